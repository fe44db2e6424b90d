-- grants: which role may call which procedure of this area and read which table.

-- For the procedures.
GRANT SELECT, INSERT, UPDATE, DELETE ON mq_watched TO 'mq_owner'@'localhost';
GRANT SELECT, INSERT, UPDATE, DELETE ON mq_subscription TO 'mq_owner'@'localhost';

CALL imq_grant_to('mq_operator', 'watch_table unwatch_table subscribe unsubscribe list_subscriptions', '');
CALL imq_grant_to('mq_viewer', 'list_subscriptions', '');

-- Procedures that run with the caller's rights call these. They check the account's rights themselves.
CALL imq_grant_to('mq_operator', 'add_watched', '');
