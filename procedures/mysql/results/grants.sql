-- grants: which role may call which procedure of this area and read which table.

CALL imq_grant_to('mq_producer', 'get_result', '');
CALL imq_grant_to('mq_consumer', 'set_result get_result', '');
CALL imq_grant_to('mq_operator', 'get_result', '');
