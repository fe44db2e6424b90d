-- Functions that have other arguments now: the old ones would stay beside them.

DROP FUNCTION IF EXISTS mq.find_feed(text);

DROP FUNCTION IF EXISTS mq.drop_watched(text);
