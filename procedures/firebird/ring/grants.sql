-- grants: which role may call which procedure of this area and read which table.

EXECUTE PROCEDURE imq_grant_to('mq_consumer', 'claim_wraparound');
