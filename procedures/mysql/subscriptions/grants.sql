-- grants: which role may call which procedure of this area and read which table.

-- For the procedures.
GRANT SELECT, INSERT, UPDATE, DELETE ON mq_watched TO 'mq_owner'@'localhost';
GRANT SELECT, INSERT, UPDATE, DELETE ON mq_subscription TO 'mq_owner'@'localhost';
-- The triggers of watched tables, which a dump contains. The installing account may lack the right on a user's table.
SET SESSION group_concat_max_len = 1073741824;
SELECT CONCAT('[', GROUP_CONCAT(DISTINCT JSON_QUOTE(CONCAT('SELECT, TRIGGER ON `', REPLACE(event_object_schema, '`', '``'), '`.`',
    REPLACE(event_object_table, '`', '``'), '`'))), ']') INTO @mq_rights
FROM information_schema.triggers
WHERE trigger_schema = DATABASE() AND definer = 'mq_owner@localhost' AND action_statement LIKE '%imq\_send\_changes(%';
CALL imq_grant_owner(@mq_rights);

CALL imq_grant_to('mq_operator', 'watch_table unwatch_table subscribe unsubscribe list_subscriptions', '');
CALL imq_grant_to('mq_viewer', 'list_subscriptions', '');

-- Procedures that run with the caller's rights call these. They check the account's rights themselves.
CALL imq_grant_to('mq_operator', 'add_watched', '');
