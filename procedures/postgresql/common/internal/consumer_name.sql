-- consumer_name: a name for a process that passed none: its application name, or else its role, and its process id.
CREATE OR REPLACE FUNCTION mq_internal.consumer_name(p_name text) RETURNS text
LANGUAGE sql STABLE AS $$
    -- The planner can inline a function of this kind into the calling query.
    SELECT coalesce(p_name, left(coalesce(nullif(current_setting('application_name'), ''), session_user), 180)
        || '/' || pg_backend_pid());
$$;
