-- wake: wake the consumers that wait for a type, if the queue's setting allows it.
-- Transaction: the event is posted when the caller commits, once per transaction
--
-- The name of an event has at most 127 bytes, and clients cut its trailing blanks. So types that begin with the same 30
-- characters wake each other's consumers, who then find nothing. The server compares each new event of a transaction with
-- all its others: 15,000 took 2 s. So a transaction posts at most 1,000 events; consumers of other types find their
-- messages when they poll.
CREATE OR ALTER PROCEDURE imq_wake (p_type mq_name)
AS
DECLARE c_most integer = 1000;
DECLARE v_n integer;
DECLARE v_notify smallint;
BEGIN
    SELECT notify FROM imq_policy(:p_type) INTO v_notify;
    v_n = COALESCE(RDB$GET_CONTEXT('USER_TRANSACTION', 'MQ_WAKES'), 0);
    IF (v_notify = 1 AND v_n < c_most) THEN
    BEGIN
        POST_EVENT TRIM(TRAILING FROM 'mq_' || LEFT(p_type, 30));
        c_most = RDB$SET_CONTEXT('USER_TRANSACTION', 'MQ_WAKES', v_n + 1);
    END
END
