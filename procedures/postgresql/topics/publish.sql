-- publish: send one message to each type that is bound to the topic.
-- Arguments:   p_topic (words separated by dots, 1 to 200 characters), p_body (up to 16 MiB; text, or jsonb)
-- Returns:     affected: messages sent
-- Errors:      50002 invalid_argument
-- Transaction: joins the caller's
-- Example:     SELECT mq.publish('orders.eu.paid', '{"order":17}');
CREATE OR REPLACE FUNCTION mq.publish(
    p_topic text,
    p_body text,
    OUT affected bigint
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mq, pg_temp AS $$
BEGIN
    affected := mq.publish_with(p_topic, p_body);
END
$$;

-- A text without a type goes to the function above.
CREATE OR REPLACE FUNCTION mq.publish(
    p_topic text,
    p_body jsonb,
    OUT affected bigint
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mq, pg_temp AS $$
BEGIN
    affected := mq.publish_with(p_topic, p_body::text);
END
$$;
