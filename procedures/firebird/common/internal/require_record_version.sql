-- require_record_version: refuse a transaction that cannot read rows with uncommitted changes of others.
--
-- NO RECORD_VERSION (3) fails with a deadlock error at each row that another transaction is changing. Only a monitoring
-- table shows this setting, and reading it takes as long as a claim. So a session is checked in its first call, and then
-- once per minute.
CREATE OR ALTER PROCEDURE imq_require_record_version
AS
DECLARE v_seen_at timestamp;
DECLARE v_mode smallint;
BEGIN
    -- A transaction with snapshots passes. By default, each statement has one (ReadConsistency).
    /*!4 IF (RDB$GET_CONTEXT('SYSTEM', 'SNAPSHOT_NUMBER') IS NOT NULL) THEN
        EXIT; */
    v_seen_at = RDB$GET_CONTEXT('USER_SESSION', 'MQ_RECORD_VERSION');
    IF (v_seen_at IS NULL OR LOCALTIMESTAMP NOT BETWEEN v_seen_at AND DATEADD(1 MINUTE TO v_seen_at)) THEN
    BEGIN
        SELECT mon$isolation_mode FROM mon$transactions WHERE mon$transaction_id = CURRENT_TRANSACTION INTO v_mode;
        IF (v_mode = 3) THEN
            EXECUTE PROCEDURE imq_raise_error('wrong_isolation',
                'this transaction is NO RECORD_VERSION: SET TRANSACTION READ COMMITTED RECORD_VERSION NO WAIT');
        v_mode = RDB$SET_CONTEXT('USER_SESSION', 'MQ_RECORD_VERSION', LOCALTIMESTAMP);
    END
END
