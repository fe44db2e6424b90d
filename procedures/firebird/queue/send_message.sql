-- send_message: send one message with all options.
-- Arguments:   p_type, p_body (up to 16 MiB), p_run_at (UTC, 1970 to ten years ahead; NULL: now), p_priority (-32,768 to
--              32,767, smaller first; NULL: 0), p_group_key, p_dedup_key, p_max_attempts (1 to 1,000; NULL: the queue's),
--              p_headers (up to 64 KiB), p_source (NULL: the application name), p_delay_seconds (0 to 315,360,000, instead
--              of p_run_at), p_on_conflict (keep, replace or postpone a live message that has the same dedup_key; NULL:
--              keep); names and keys have 1 to 200 characters
-- Returns:     id; created (1: new; 0: id is the live message that has this type and dedup_key); changed (1: that message
--              was replaced or postponed); state (of the message: N; A or E only if created is 0)
-- Errors:      50001 wrong_isolation (replace or postpone), 50002 invalid_argument
-- Transaction: joins the caller's, which must be READ COMMITTED and NO WAIT to replace or postpone; waits for an open
--              transaction that has sent or changed a message with the same dedup_key. A NO WAIT transaction waits up to
--              two seconds and then fails with isc_unique_key_violation or a lock conflict
-- Example:     SELECT * FROM mq_send_message('email', '{}', DATEADD(1 HOUR TO mq_utc_now()), NULL, NULL, 'a-1');
--
-- To change a live message, a call first locks a row of mq_stripe, so such calls run one after the other. From Firebird 4.0
-- on, a call does not see a message that was committed after the call began. In that case an autonomous transaction updates
-- a spare row of mq_stripe, and this transaction updates it too: that conflict makes the engine restart the call (see
-- wait_lock).

CREATE OR ALTER PROCEDURE mq_send_message (
    p_type mq_argument, p_body mq_text, p_run_at timestamp = NULL, p_priority bigint = NULL,
    p_group_key mq_argument = NULL, p_dedup_key mq_argument = NULL, p_max_attempts bigint = NULL,
    p_headers mq_text = NULL, p_source mq_argument = NULL, p_delay_seconds bigint = NULL,
    p_on_conflict mq_text = NULL
)
RETURNS (id bigint, created smallint, changed smallint, state varchar(1) CHARACTER SET ASCII)
AS
DECLARE c_seconds integer = 2;
DECLARE v_now timestamp; DECLARE v_run_at timestamp; DECLARE v_until timestamp;
DECLARE v_new bigint;
DECLARE v_locked bigint = 1;
-- The number of the first spare row, the rows per connection, and the number after which connections share rows.
DECLARE c_spare integer = 20480;
DECLARE c_each integer = 8;
DECLARE c_apart integer = 4032;
DECLARE v_spare integer;
BEGIN
    EXECUTE PROCEDURE imq_require_name('type', p_type, 0);
    EXECUTE PROCEDURE imq_require_message(p_body, p_run_at, p_priority, p_group_key, p_dedup_key, p_max_attempts, p_headers, p_source,
        p_delay_seconds, p_on_conflict);
    v_now = mq_utc_now();
    v_run_at = COALESCE(p_run_at, DATEADD(p_delay_seconds SECOND TO v_now), v_now);
    v_new = NEXT VALUE FOR mq_message_id;
    changed = 0;
    state = 'N';
    IF (p_on_conflict <> 'keep') THEN
        EXECUTE PROCEDURE imq_lock_row('stripe', p_type, p_dedup_key) RETURNING_VALUES v_locked;
    created = IIF(v_locked IS NULL, 0, NULL);
    -- Do not check first: another transaction may be finishing the message that a check sees. The INSERT waits for it in a
    -- WAIT transaction.
    WHILE (p_dedup_key IS NOT NULL AND created IS NULL) DO
    BEGIN
        INSERT INTO mq_dedup (type, dedup_key, id) VALUES (:p_type, :p_dedup_key, :v_new);
        created = 1;
    WHEN GDSCODE unique_key_violation, GDSCODE no_dup DO
        BEGIN
            SELECT d.id, 0 FROM mq_dedup AS d
            WHERE d.type = :p_type AND d.dedup_key = :p_dedup_key AND d.rdb$record_version = CURRENT_TRANSACTION
            INTO id, created;
            IF (created IS NULL) THEN
                IN AUTONOMOUS TRANSACTION DO
                    SELECT d.id, 0 FROM mq_dedup AS d WHERE d.type = :p_type AND d.dedup_key = :p_dedup_key INTO id, created;
            IF (created = 0 AND p_on_conflict <> 'keep') THEN
            BEGIN
                EXECUTE PROCEDURE imq_change_message(p_type, id, p_on_conflict, v_now, v_run_at, COALESCE(p_priority, 0), p_body,
                    p_headers) RETURNING_VALUES changed;
                -- The message was finished in the meantime: send again. Or this call cannot see it yet.
                IF (changed = 0 AND NOT EXISTS (SELECT * FROM mq_message AS m WHERE m.id = :id)) THEN
                BEGIN
                    v_spare = c_spare + MOD(c_each * CURRENT_CONNECTION, c_apart);
                    IN AUTONOMOUS TRANSACTION DO
                        UPDATE mq_stripe SET n = n WHERE n = :v_spare;
                    UPDATE mq_stripe SET n = n WHERE n = :v_spare;
                    created = IIF(ROW_COUNT = 1, NULL, 0);
                    WHEN GDSCODE lock_conflict, GDSCODE deadlock, GDSCODE update_conflict, GDSCODE random, GDSCODE no_cur_rec DO
                        created = NULL;
                END
            END
            -- The key is neither ours nor committed: another transaction is sending or finishing it. A WAIT transaction has
            -- already waited.
            v_until = COALESCE(v_until, DATEADD(c_seconds SECOND TO mq_utc_now()));
            IF (created IS NULL AND mq_utc_now() NOT BETWEEN DATEADD(-c_seconds SECOND TO v_until) AND v_until) THEN
                EXCEPTION;
        END
    END
    created = COALESCE(created, 1);
    IF (created = 1) THEN
    BEGIN
        id = v_new;
        EXECUTE PROCEDURE imq_write_message(id, p_type, p_body, v_now, v_run_at, COALESCE(p_priority, 0), p_group_key, p_dedup_key,
            p_max_attempts, p_headers, imq_consumer_name(p_source));
    END
    ELSE IF (changed = 0) THEN
    BEGIN
        state = imq_state_of(id);
        -- This call does not see a message that was committed after it began.
        IF (state IS NULL) THEN
            IN AUTONOMOUS TRANSACTION DO
                state = COALESCE(imq_state_of(id), 'N');
    END
    SUSPEND;
END
