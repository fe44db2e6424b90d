-- grants: which role may call which procedure of this area.

CALL imq_grant_to('mq_consumer', 'claim_wraparound', '');
