-- allowance: how many messages the limits of a type let a claim have. Other claims of the type get none until this transaction
--            ends.
-- Arguments:   p_type, p_size (what the claim wants), p_max_active, p_rate and p_rate_seconds (the policy)
-- Returns:     allowed: 0 to p_size; 0 when another claim is at work
-- Errors:      none
-- Transaction: joins the caller's, which is NO WAIT
-- Example:     EXECUTE PROCEDURE mq_allowance('email', 10, 5, 0, 1) RETURNING_VALUES v_allowed;
--
-- The lock is a row of mq_stripe, which never changes. Whoever gets it sees what all claims before it have done: from Firebird 4.0
-- on, where another claim has had the row since this call began, the engine begins the call again (4.0), or try_lock does not get
-- the row (5.0). Messages that were finished since may be counted still.

SET TERM ^ ;

CREATE OR ALTER PROCEDURE mq_allowance (
    p_type mq_name,
    p_size integer,
    p_max_active integer,
    p_rate integer,
    p_rate_seconds integer
)
RETURNS (
    allowed integer
)
AS
-- Where the rows of types begin, and how many there are; at most so many expired claims are rescued.
DECLARE c_first integer = 40960;
DECLARE c_rows integer = 4096;
DECLARE c_rescue integer = 20;
DECLARE v_locked integer;
DECLARE v_number bigint;
DECLARE v_holder bigint;
DECLARE v_active bigint;
DECLARE v_rescued bigint;
DECLARE v_now bigint;
DECLARE v_latest bigint;
BEGIN
    allowed = 0;
    EXECUTE PROCEDURE mq_try_lock('stripe', c_first + MOD(ABS(HASH(p_type)), c_rows), NULL, NULL)
        RETURNING_VALUES v_locked, v_number, v_holder;
    IF (v_locked IS DISTINCT FROM 1) THEN
        EXIT;
    allowed = p_size;
    IF (p_max_active > 0) THEN
    BEGIN
        v_active = mq_count_held(p_type);
        -- Firebird 3.0 can miss a row that another transaction changes at this moment: it counts twice.
        IF (v_active < p_max_active AND RDB$GET_CONTEXT('SYSTEM', 'ENGINE_VERSION') STARTING WITH '3.') THEN
            v_active = MAXVALUE(v_active, mq_count_held(p_type));
        v_rescued = 1;
        WHILE (v_active >= p_max_active AND v_rescued > 0) DO
        BEGIN
            EXECUTE PROCEDURE mq_rescue(p_type, c_rescue) RETURNING_VALUES v_rescued;
            IF (v_rescued > 0) THEN
                v_active = mq_count_held(p_type);
        END
        allowed = MAXVALUE(MINVALUE(allowed, p_max_active - v_active), 0);
    END
    IF (p_rate > 0 AND allowed > 0) THEN
    BEGIN
        -- While a rollback goes on, the stripe may be free before this row is.
        EXECUTE PROCEDURE mq_try_lock('limited', NULL, p_type, NULL) RETURNING_VALUES v_locked, v_number, v_holder;
        v_now = mq_microseconds();
        allowed = IIF(v_locked = 0, 0, MINVALUE(allowed, mq_tokens(v_number, p_rate, p_rate_seconds, v_now)));
        v_latest = v_now + p_rate_seconds * 1000000;
        IF (v_locked = 1 AND v_number > v_latest) THEN
            -- The clock was set back, or the period has become shorter: it is empty, and gains from now on.
            UPDATE mq_limited SET full_at = :v_latest WHERE type = :p_type;
    END
END^

SET TERM ; ^
