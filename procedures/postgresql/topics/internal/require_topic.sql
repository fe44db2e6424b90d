-- require_topic: refuse what is no topic, or no pattern of topics.
-- Arguments:   p_argument (its name in the contract), p_topic, p_wildcards (a word may be * or #)
-- Returns:     nothing
-- Errors:      50002 invalid_argument
-- Transaction: reads nothing
-- Example:     SELECT mq.require_topic('pattern', 'orders.#', true);

CREATE OR REPLACE FUNCTION mq.require_topic(
    p_argument text,
    p_topic text,
    p_wildcards boolean
) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    c_word CONSTANT text := $r$[^.*#"\\\u0001-\u0020\u007f]+$r$;
BEGIN
    PERFORM mq.require_name(p_argument, p_topic, false);
    IF p_wildcards THEN
        IF p_topic !~ format('^(%1$s|[*#])([.](%1$s|[*#]))*$', c_word) THEN
            PERFORM mq.raise_error('invalid_argument', p_argument || ': must be words with dots between them; a word may be * '
                'or #, and has no other *, no other #, no quotes, backslashes and white space');
        END IF;
    ELSIF p_topic !~ format('^%1$s([.]%1$s)*$', c_word) THEN
        -- What is left can stand in JSON as it is: see publish.
        PERFORM mq.raise_error('invalid_argument', p_argument || ': must be words with dots between them, without *, #, quotes, '
            'backslashes and white space');
    END IF;
END
$$;
