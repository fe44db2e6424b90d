-- add_polled_row: add the entry of a row that was claimed for the first time.
-- Arguments:   p_name, p_batch_key, p_hash and p_ident (the row's identity), p_active (1: the row is at active_value),
--              p_json (its key), p_content (the row; NULL: the table refused the change), p_error (the text of that refusal)
CREATE OR ALTER PROCEDURE imq_add_polled_row (
    p_name mq_name, p_batch_key mq_key, p_hash bigint, p_ident mq_ident, p_active smallint, p_json mq_text,
    p_content mq_text, p_error mq_error
)
AS
DECLARE v_id bigint;
BEGIN
    v_id = NEXT VALUE FOR mq_polled_row_id;
    INSERT INTO mq_polled_row (id, batch_key, run_at, ident_hash, attempts, active, state, name, ident, key_json, consumer)
    SELECT :v_id, :p_batch_key, mq_utc_now(), :p_hash, 1, :p_active, 'A', :p_name, :p_ident, COALESCE(:p_json, '{}'), consumer
    FROM mq_polled WHERE name = :p_name;
    IF (p_content IS NOT NULL) THEN
        INSERT INTO mq_polled_taken (id, content) VALUES (:v_id, :p_content);
    ELSE
        INSERT INTO mq_polled_write (id, kind, error) VALUES (:v_id, 'F', :p_error);
END
