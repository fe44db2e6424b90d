-- require_topic: refuse a text that is not a topic, or not a pattern of topics.
-- Arguments: p_wildcards (true: a pattern, in which a word may be * or #)
CREATE OR REPLACE FUNCTION mq_internal.require_topic(p_argument text, p_topic text, p_wildcards boolean) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    c_word CONSTANT text := $r$[^.*#"\\\u0001-\u0020\u007f]+$r$;
BEGIN
    PERFORM mq_internal.require_name(p_argument, p_topic, false);
    IF p_wildcards THEN
        IF p_topic !~ format('^(%1$s|[*#])([.](%1$s|[*#]))*$', c_word) THEN
            PERFORM mq_internal.raise_error('invalid_argument', p_argument || ': must be words separated by dots; a word may be * '
                'or #, and otherwise contains no *, #, quotes, backslashes or white space');
        END IF;
    ELSIF p_topic !~ format('^%1$s([.]%1$s)*$', c_word) THEN
        -- A topic that passes needs no escapes in JSON: see publish.
        PERFORM mq_internal.raise_error('invalid_argument', p_argument || ': must be words separated by dots, without *, #, quotes, '
            'backslashes or white space');
    END IF;
END
$$;
