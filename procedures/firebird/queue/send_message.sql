-- send_message: send one message with all options.
-- Arguments:   p_type, p_body, p_run_at (UTC; NULL: now), p_priority (-32,768 to 32,767, smaller first; NULL: 0), p_group_key,
--              p_dedup_key, p_max_attempts (1 to 1,000; NULL: the queue's), p_headers (up to 64 KiB), p_source (NULL: the
--              application name), p_delay_seconds (instead of p_run_at), p_on_conflict (what becomes of a live message of
--              this dedup_key: keep, replace or postpone; NULL: keep); names and keys have 1 to 200 characters
-- Returns:     id, created (0: a live message has this type and dedup_key, and id is that one's), changed (1: that one
--              was replaced or postponed)
-- Errors:      50001 wrong_isolation (with on_conflict replace or postpone), 50002 invalid_argument
-- Transaction: joins the caller's, which must be READ COMMITTED and NO WAIT to replace or postpone; waits for an open transaction
--              that has sent or changed the same dedup_key, in a NO WAIT transaction for two seconds, and then fails with
--              isc_unique_key_violation or a lock conflict
-- Example:     SELECT * FROM mq_send_message('email', '{}', DATEADD(1 HOUR TO mq_utc_now()), NULL, NULL, 'a-1');

SET TERM ^ ;

CREATE OR ALTER PROCEDURE mq_send_message (
    p_type mq_argument,
    p_body mq_text,
    p_run_at timestamp = NULL,
    p_priority bigint = NULL,
    p_group_key mq_argument = NULL,
    p_dedup_key mq_argument = NULL,
    p_max_attempts bigint = NULL,
    p_headers mq_text = NULL,
    p_source mq_argument = NULL,
    p_delay_seconds bigint = NULL,
    p_on_conflict mq_argument = NULL
)
RETURNS (
    id bigint,
    created bigint,
    changed bigint
)
AS
BEGIN
    EXECUTE PROCEDURE mq_require_name('type', p_type, 0);
    EXECUTE PROCEDURE mq_require_message(p_body, p_run_at, p_priority, p_group_key, p_dedup_key, p_max_attempts, p_headers, p_source,
        p_delay_seconds, p_on_conflict);
    EXECUTE PROCEDURE mq_send_one(p_type, p_body, p_run_at, p_priority, p_group_key, p_dedup_key, p_max_attempts, p_headers, p_source,
        p_delay_seconds, p_on_conflict) RETURNING_VALUES id, created, changed;
    SUSPEND;
END^

SET TERM ; ^
