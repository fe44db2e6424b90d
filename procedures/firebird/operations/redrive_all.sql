-- redrive_all: retry the dead letters of a queue, or those with one error; their attempts are reset to 0.
-- Arguments:   p_type (1 to 200 characters), p_error (an error as list_errors returns it; only dead letters with it are
--              retried; NULL: any), p_size (1 to 10,000; NULL: 1,000)
-- Returns:     affected: messages that will be retried, those that died first; repeat until it is 0
-- Errors:      50001 wrong_isolation, 50002 invalid_argument
-- Transaction: joins the caller's, which must be READ COMMITTED NO WAIT; skips dead letters that another call is changing
-- Example:     SELECT * FROM mq_redrive_all('email', 'connection timed out after # s');
CREATE OR ALTER PROCEDURE mq_redrive_all (
    p_type mq_argument,
    p_error mq_text = NULL,
    p_size bigint = NULL
)
RETURNS (affected bigint)
AS
DECLARE v_id bigint;
DECLARE v_ok integer;
DECLARE v_grouped smallint;
-- One more character than an error of list_errors has.
DECLARE v_error varchar(201) CHARACTER SET UTF8;
BEGIN
    EXECUTE PROCEDURE imq_require_name('type', p_type, 0);
    EXECUTE PROCEDURE imq_require_range('size', p_size, 1, 10000);
    EXECUTE PROCEDURE imq_require_read_committed;
    SELECT grouped FROM imq_policy(:p_type) INTO v_grouped;
    v_error = TRIM(TRAILING FROM LEFT(p_error, 201));
    affected = 0;
    FOR
        SELECT a.id
        FROM (
            SELECT d.id FROM mq_dead AS d WHERE d.type = IIF(:v_error IS NULL, :p_type, NULL)
            PLAN (d ORDER mq_dead_age) ORDER BY d.type, d.died_at, d.id
        ) AS a
        UNION ALL
        SELECT b.id
        FROM (
            SELECT d.id FROM mq_dead AS d
            WHERE d.type = IIF(:v_error IS NOT NULL, :p_type, NULL) AND d.error_hash = HASH(:v_error)
                AND d.error_group = :v_error
            PLAN (d ORDER mq_dead_error) ORDER BY d.type, d.error_hash, d.died_at
        ) AS b
        INTO v_id
    DO
    BEGIN
        v_ok = 0;
        BEGIN
            DELETE FROM mq_dead
            WHERE id = :v_id AND type = :p_type AND (:v_error IS NULL OR error_group = :v_error)
            RETURNING 1 INTO v_ok;
        WHEN GDSCODE lock_conflict, GDSCODE deadlock, GDSCODE update_conflict, GDSCODE random, GDSCODE no_cur_rec DO
            v_ok = 0;
        END
        IF (v_ok = 1) THEN
        BEGIN
            EXECUTE PROCEDURE imq_put_back(p_type, v_id, 0, v_grouped);
            affected = affected + 1;
        END
        IF (affected = COALESCE(p_size, 1000)) THEN
            LEAVE;
    END
    IF (affected > 0) THEN
    BEGIN
        EXECUTE PROCEDURE imq_lower_mark(p_type);
        EXECUTE PROCEDURE imq_wake(p_type);
    END
    SUSPEND;
END
