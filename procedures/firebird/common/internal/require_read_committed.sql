-- require_read_committed: refuse a transaction in which claims and finishes cannot work.
--
-- A claim skips rows that others have locked. Before Firebird 5 that needs a NO WAIT transaction: in one that waits, a
-- single open take would block this claim and all claims after it. See docs/decisions/0008_firebird.md.
CREATE OR ALTER PROCEDURE imq_require_read_committed
AS
BEGIN
    IF (RDB$GET_CONTEXT('SYSTEM', 'ISOLATION_LEVEL') <> 'READ COMMITTED') THEN
        EXECUTE PROCEDURE imq_raise_error('wrong_isolation', 'this transaction is '
            || RDB$GET_CONTEXT('SYSTEM', 'ISOLATION_LEVEL') || ': SET TRANSACTION READ COMMITTED RECORD_VERSION NO WAIT');
    IF (RDB$GET_CONTEXT('SYSTEM', 'LOCK_TIMEOUT') <> '0') THEN
        EXECUTE PROCEDURE imq_raise_error('wrong_isolation',
            'this transaction waits for locks: SET TRANSACTION READ COMMITTED RECORD_VERSION NO WAIT');
    EXECUTE PROCEDURE imq_require_record_version;
END
