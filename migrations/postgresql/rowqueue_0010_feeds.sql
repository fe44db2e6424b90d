-- Functions that have other arguments now: the old ones would stay beside them.

DROP FUNCTION IF EXISTS mq_internal.find_feed(text);

DROP FUNCTION IF EXISTS mq_internal.drop_watched(text);
