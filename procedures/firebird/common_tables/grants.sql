-- grants: which role may call which procedure of this area and read which table.

-- Statements on users' tables run with the caller's rights and call these functions, which read and write no data.
EXECUTE PROCEDURE imq_grant_to('mq_consumer mq_operator', 'number_text base64 utf8_bytes');
