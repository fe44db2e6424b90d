-- read_time: the time that a text with a zone means; NULL for any other text.
CREATE OR REPLACE FUNCTION mq_internal.read_time(p_text text) RETURNS timestamptz
LANGUAGE plpgsql AS $$
BEGIN
    IF p_text ~ '^[0-9]{4}(-[0-9]{2}){2}[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]{1,6})?)?(Z|[+-][0-9]{2}:[0-9]{2})$' THEN
        RETURN p_text::timestamptz;
    END IF;
    RETURN NULL;
EXCEPTION WHEN data_exception THEN
    RETURN NULL;
END
$$;
