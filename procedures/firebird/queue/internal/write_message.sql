-- write_message: insert a new message: ready, or delayed when it is not due yet.
CREATE OR ALTER PROCEDURE imq_write_message (
    p_id bigint, p_type mq_name, p_body mq_text, p_now timestamp, p_run_at timestamp, p_priority smallint,
    p_group_key mq_name, p_dedup_key mq_name, p_max_attempts smallint, p_headers mq_text, p_source mq_name
)
AS
DECLARE v_grouped smallint; DECLARE v_fair smallint;
BEGIN
    SELECT grouped, fair FROM imq_policy(:p_type) INTO v_grouped, v_fair;
    INSERT INTO mq_message (id, run_at, created_at, priority, max_attempts, type, body, headers, group_key, dedup_key, source)
    VALUES (:p_id, :p_run_at, :p_now, :p_priority, :p_max_attempts, :p_type, :p_body, :p_headers, :p_group_key, :p_dedup_key,
        :p_source);
    IF (p_run_at > p_now) THEN
        INSERT INTO mq_delayed (id, type, run_at, priority, attempts) VALUES (:p_id, :p_type, :p_run_at, :p_priority, 0);
    ELSE
    BEGIN
        IF (v_grouped = 1) THEN
            INSERT INTO mq_grouped (type, group_key, id, attempts) VALUES (:p_type, COALESCE(:p_group_key, ''), :p_id, 0);
        INSERT INTO mq_ready (type, priority, run_at, id, attempts, lane)
        VALUES (:p_type, :p_priority, :p_run_at, :p_id, 0,
            IIF(:v_fair = 1, LPAD(:p_priority + 32768, 5, '0') || COALESCE(:p_group_key, ''), NULL));
        IF (p_run_at < p_now) THEN
            EXECUTE PROCEDURE imq_lower_mark(p_type);
    END
    EXECUTE PROCEDURE imq_wake(p_type);
END
