-- grants: which role may call which procedure of this area and read which table.

EXECUTE PROCEDURE imq_grant_to('mq_operator', 'watch_table unwatch_table subscribe unsubscribe list_subscriptions');
EXECUTE PROCEDURE imq_grant_to('mq_viewer', 'list_subscriptions');
