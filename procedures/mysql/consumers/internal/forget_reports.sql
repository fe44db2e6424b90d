-- forget_reports: delete figures older than a day, and consumers that stopped an hour ago or are silent for a day.
-- Returns:     nothing; a call deletes at most 1,000 rows of each
-- Transaction: joins the caller's, and does nothing unless it is READ COMMITTED; skips rows that others have locked

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_forget_reports(IN p_now datetime(6))
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE c_rows int DEFAULT 1000;
    DECLARE v_rows longtext CHARACTER SET utf8mb4;
    -- At other levels gap locks would stay, and other consumers write into these gaps.
    IF NOT @mq_joined OR /*M! @@SESSION.tx_isolation */ /*!80000 @@SESSION.transaction_isolation */ = 'READ-COMMITTED' THEN
        SELECT CONCAT('[', GROUP_CONCAT('["', x.minute, '",', JSON_QUOTE(x.type), ',', JSON_QUOTE(x.consumer), ']'), ']')
        INTO v_rows
        FROM (
            SELECT r.minute, r.type, r.consumer FROM mq_report AS r FORCE INDEX (PRIMARY)
            WHERE r.minute < p_now - INTERVAL 24 HOUR
            ORDER BY r.minute, r.type, r.consumer LIMIT c_rows FOR UPDATE SKIP LOCKED
        ) AS x;
        IF v_rows IS NOT NULL THEN
            DELETE r FROM JSON_TABLE(v_rows, '$[*]' COLUMNS (minute datetime(6) PATH '$[0]',
                type varchar(200) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ PATH '$[1]',
                consumer varchar(200) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ PATH '$[2]')) AS j
            STRAIGHT_JOIN mq_report AS r FORCE INDEX (PRIMARY)
                ON r.minute = j.minute AND r.type = j.type AND r.consumer = j.consumer;
        END IF;
        -- First without locks, because most rows of mq_consumer belong to working consumers.
        SELECT CONCAT('[', GROUP_CONCAT('[', JSON_QUOTE(x.type), ',', JSON_QUOTE(x.consumer), ']'), ']') INTO v_rows
        FROM (
            SELECT c.type, c.consumer FROM mq_consumer AS c
            WHERE c.reported_at < p_now - INTERVAL IF(c.due_at IS NULL, 1, 24) HOUR
            LIMIT c_rows
        ) AS x;
        IF v_rows IS NOT NULL THEN
            SELECT CONCAT('[', GROUP_CONCAT('[', JSON_QUOTE(x.type), ',', JSON_QUOTE(x.consumer), ']'), ']') INTO v_rows
            FROM (
                SELECT c.type, c.consumer
                FROM JSON_TABLE(v_rows, '$[*]' COLUMNS (
                    type varchar(200) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ PATH '$[0]',
                    consumer varchar(200) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ PATH '$[1]')) AS j
                STRAIGHT_JOIN mq_consumer AS c FORCE INDEX (PRIMARY) ON c.type = j.type AND c.consumer = j.consumer
                WHERE c.reported_at < p_now - INTERVAL IF(c.due_at IS NULL, 1, 24) HOUR
                FOR UPDATE /*!80000 OF c */ SKIP LOCKED
            ) AS x;
        END IF;
        IF v_rows IS NOT NULL THEN
            DELETE c FROM JSON_TABLE(v_rows, '$[*]' COLUMNS (
                type varchar(200) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ PATH '$[0]',
                consumer varchar(200) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ PATH '$[1]')) AS j
            STRAIGHT_JOIN mq_consumer AS c FORCE INDEX (PRIMARY) ON c.type = j.type AND c.consumer = j.consumer;
        END IF;
    END IF;
END
