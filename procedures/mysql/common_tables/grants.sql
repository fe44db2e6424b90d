-- grants: the rights of mq_owner for this area, and of the roles on what the areas of users' tables call.

-- require_use reads from the server's grant tables which accounts may use a user's table: names and rights, no passwords. If
-- the installing account cannot grant this, a polling table or a feed works only for the user name that created it; see the
-- guide.
CALL imq_grant_owner(JSON_ARRAY(
    'SELECT (host, user, select_priv, update_priv, delete_priv, trigger_priv /*M! , is_role */) ON mysql.user',
    'SELECT (host, db, user, select_priv, update_priv, delete_priv, trigger_priv) ON mysql.db',
    'SELECT (host, db, user, table_name, table_priv) ON mysql.tables_priv',
    /*M! 'SELECT (host, user, role) ON mysql.roles_mapping' */
    /*!80000 'SELECT (from_host, from_user, to_host, to_user) ON mysql.role_edges' */
));

-- Procedures that run with the caller's rights call these. They check the account's rights themselves.
CALL imq_grant_to('mq_consumer mq_operator',
    'raise_error require_name require_range require_key require_read_committed begin_call end_call undo_call
     consumer_name read_outcomes split_names row_json run read_columns run_template',
    '');
CALL imq_grant_to('mq_operator', 'find_table find_columns require_rights read_options', '');
CALL imq_grant_to('mq_viewer', 'raise_error require_name', '');
