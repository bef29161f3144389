-- +goose Up
-- The model that the gateway's model "assistant" stands for. Empty means the operator's default.
ALTER TABLE assistant_configs ADD COLUMN text_model TEXT NOT NULL DEFAULT '';

-- An owner who limited every field of the assistant's config also wants the new fields limited. Only levels below
-- read_write are stored, so the higher one sorts last.
INSERT INTO project_grants (account_id, app_id, capability, field, level)
	SELECT account_id, app_id, 'assistant_config', 'textModel', MAX(level) FROM project_grants
	WHERE capability = 'assistant_config' GROUP BY account_id, app_id HAVING COUNT(*) = 5;
INSERT INTO project_grants (account_id, app_id, capability, field, level)
	SELECT account_id, app_id, 'assistant_config', 'gatewayUsage', 'off' FROM project_grants
	WHERE capability = 'assistant_config' GROUP BY account_id, app_id HAVING COUNT(*) = 6 AND MAX(level) = 'off';

-- +goose Down
DELETE FROM project_grants WHERE field IN ('textModel', 'gatewayUsage');
ALTER TABLE assistant_configs DROP COLUMN text_model;
