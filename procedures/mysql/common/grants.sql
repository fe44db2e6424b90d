-- grants: the accounts, and the rights of mq_owner; the other areas' files grant the rest.

-- A dump contains no accounts: if they are missing, this needs CREATE USER.
CREATE USER IF NOT EXISTS 'mq_owner'@'localhost' /*!80000 IDENTIFIED WITH caching_sha2_password
    AS '$A$005$THISISACOMBINATIONOFINVALIDSALTANDPASSWORDTHATMUSTNEVERBRBEUSED' */ ACCOUNT LOCK;
CREATE ROLE IF NOT EXISTS mq_producer;
CREATE ROLE IF NOT EXISTS mq_consumer;
CREATE ROLE IF NOT EXISTS mq_operator;
CREATE ROLE IF NOT EXISTS mq_viewer;

GRANT SELECT ON mq_installed TO 'mq_owner'@'localhost';
GRANT SELECT, INSERT, UPDATE, DELETE ON mq_allowed TO 'mq_owner'@'localhost';

-- On MySQL even the definer of a procedure needs the right to call it. By default, MySQL cuts the list at 1,024 characters.
SET SESSION group_concat_max_len = 1073741824;
SELECT GROUP_CONCAT(i.name SEPARATOR ' ') INTO @mq_calls
FROM information_schema.routines AS r
INNER JOIN mq_installed AS i ON r.routine_name IN (CONCAT('mq_', i.name), CONCAT('imq_', i.name))
WHERE r.routine_schema = DATABASE() AND i.kind = 'procedure' AND i.name <> 'grant_to';
CALL imq_grant_to('''mq_owner''@''localhost''', @mq_calls, '');
-- Not in that call: on MariaDB, a procedure that is running counts as a recursive call in a GRANT on it.
GRANT EXECUTE ON PROCEDURE imq_grant_to TO 'mq_owner'@'localhost';
-- For transaction_level, which reads the isolation level of one transaction there.
CALL imq_grant_owner(JSON_ARRAY(/*M! 'PROCESS ON *.*' */ /*!80000 'SELECT ON performance_schema.events_transactions_current' */));
