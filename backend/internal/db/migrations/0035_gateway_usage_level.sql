-- +goose Up
-- The built-in level of gatewayUsage was read and is read_write now. An account that had chosen a default of its own
-- keeps the level that it saw then.
INSERT INTO account_grants (account_id, capability, field, level)
	SELECT account_id, 'assistant_config', 'gatewayUsage', 'read' FROM account_grants
	GROUP BY account_id HAVING SUM(CASE WHEN field = 'gatewayUsage' THEN 1 ELSE 0 END) = 0;

-- +goose Down
DELETE FROM account_grants WHERE field = 'gatewayUsage' AND level <> 'off';
