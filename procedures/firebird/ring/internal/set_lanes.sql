-- set_lanes: write the lane of up to p_size ready messages that need one, and skip those that another transaction has locked.
-- Arguments:   p_type, p_fair (1: write the lanes of a fair queue; 0: remove them), p_size
--
-- set_queue calls this for all messages. The claims of fair queues and rings do it for those that other transactions, which
-- had begun before, have sent or put back since.
CREATE OR ALTER PROCEDURE imq_set_lanes (p_type mq_name, p_fair smallint, p_size integer)
AS
DECLARE v_lane mq_lane;
DECLARE v_place char(8) CHARACTER SET OCTETS;
BEGIN
    FOR SELECT e.place, e.lane
        FROM (
            SELECT r.RDB$DB_KEY AS place, LPAD(r.priority + 32768, 5, '0') || COALESCE(m.group_key, '') AS lane
            FROM mq_ready AS r
            LEFT JOIN mq_message AS m ON m.id = r.id
            WHERE r.type = IIF(:p_fair = 1, :p_type, '') AND r.lane IS NULL
            PLAN JOIN (r INDEX (mq_ready_lane), m INDEX (mq_message_pk))
            UNION ALL
            SELECT r.RDB$DB_KEY, NULL
            FROM mq_ready AS r
            WHERE r.type = IIF(:p_fair = 0, :p_type, '') AND r.lane >= '0'
            PLAN (r INDEX (mq_ready_lane))
        ) AS e
        ROWS :p_size
        INTO v_place, v_lane
    DO
    BEGIN
        UPDATE mq_ready SET lane = :v_lane WHERE RDB$DB_KEY = :v_place;
        WHEN GDSCODE lock_conflict, GDSCODE deadlock, GDSCODE update_conflict, GDSCODE random, GDSCODE no_cur_rec DO
            v_place = NULL;
    END
END
