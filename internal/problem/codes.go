package problem

import "slices"

// Codes of errors. The table below lists their properties.
const (
	CodeInvalidRequest         = "invalid_request"
	CodeAuthRequired           = "auth_required"
	CodeInvalidKey             = "invalid_key"
	CodeDeviceCodeDenied       = "device_code_denied"
	CodePermissionDenied       = "permission_denied"
	CodeUnknownDeviceCode      = "unknown_device_code"
	CodeNotFound               = "not_found"
	CodeMethodNotAllowed       = "method_not_allowed"
	CodeConflict               = "conflict"
	CodeVersionConflict        = "version_conflict"
	CodeNotConfigured          = "not_configured"
	CodeNotConnected           = "not_connected"
	CodeTooManyKeys            = "too_many_keys"
	CodeDeviceCodeExpired      = "device_code_expired"
	CodeRequestTooLarge        = "request_too_large"
	CodeUnsupportedMedia       = "unsupported_media"
	CodeRateLimited            = "rate_limited"
	CodeInternal               = "internal_error"
	CodeUnavailable            = "unavailable"
	CodeTimeout                = "timeout"
	CodeBackendUnreachable     = "backend_unreachable"
	CodeInvalidResponse        = "backend_invalid_response"
	CodeUnsupported            = "unsupported"
	CodeTooManySessions        = "too_many_sessions"
	CodeSandboxBlocked         = "sandbox_blocked"
	CodeAdapterUnavailable     = "adapter_unavailable"
	CodeUnknownTransport       = "unknown_transport"
	CodeNoServiceManager       = "no_service_manager"
	CodeServiceNotInstalled    = "service_not_installed"
	CodeProgramMissing         = "program_missing"
	CodeServiceManagerRefused  = "service_manager_refused"
	CodeServiceFile            = "service_file"
	CodeServiceUnsupported     = "service_unsupported"
	CodeNotEmbedded            = "not_embedded"
	CodeFontDuplicate          = "font_duplicate"
	CodeFontTooMany            = "font_too_many"
	CodeFontNotFound           = "font_not_found"
	CodeFontUnreadable         = "font_unreadable"
	CodeFontDamaged            = "font_damaged"
	CodeFontTooLarge           = "font_too_large"
	CodeFontUnsupported        = "font_unsupported"
	CodeStateUnwritable        = "state_unwritable"
	CodeClientFilesUnavailable = "client_files_unavailable"
	CodeNotAccepted            = "not_accepted"
	CodeInvalidScenario        = "invalid_scenario"
	CodeTooManyCalls           = "too_many_calls"
	CodeTooManyUnread          = "too_many_unread"
	CodeInvalidHandshake       = "invalid_preface"
	CodeProtocolMismatch       = "protocol_mismatch"
	CodeTooManyClients         = "too_many_clients"
	CodeRefused                = "refused"
	CodeUnknownToolset         = "unknown_toolset"
	CodeInvalidManifest        = "invalid_manifest"
	CodeLoopbackUnreachable    = "loopback_unreachable"
	CodeAuthTimeout            = "auth_timeout"
	CodeLinkConflict           = "link_conflict"
	CodeInvalidConfig          = "invalid_config"
	CodePollingAborted         = "polling_aborted"
	CodeBusy                   = "busy"
	CodeGeneratedFileChanged   = "generated_file_changed"
	CodeFolderUnusable         = "folder_unusable"
	CodeUnknownExample         = "unknown_example"
	CodeFileUnreadable         = "file_unreadable"
	CodeFileExists             = "file_exists"
	CodeFileUnwritable         = "file_unwritable"
	CodeCancelled              = "cancelled"
	CodeAdapterNotApproved     = "adapter_not_approved"
	CodeAdapterNotUsable       = "adapter_not_usable"
	CodeAdapterDuplicate       = "adapter_duplicate"
	CodeAdapterTooMany         = "adapter_too_many"
	CodeAdapterNotFound        = "adapter_not_found"
	CodeAdapterUnreadable      = "adapter_unreadable"
	CodeNotConfirmed           = "not_confirmed"
	CodeReleasesNotConfigured  = "releases_not_configured"
	CodeReleasesUnreachable    = "releases_unreachable"
	CodeReleasesUntrusted      = "releases_untrusted"
	CodeReleasesStale          = "releases_stale"
	CodeVersionUnknown         = "version_unknown"
	CodeAccountNotFound        = "account_not_found"
	CodePasswordNotAccepted    = "password_not_accepted"
	CodeAccountSuspended       = "account_suspended"
	CodeNoApp                  = "no_app"
	CodePageNotFound           = "page_not_found"
	CodeAgentNotFound          = "agent_not_found"
	CodeDaemonUnavailable      = "daemon_unavailable"
	CodeNotStateDirectory      = "not_a_state_directory"
	CodeAuthFileWriteFailed    = "auth_file_write_failed"
	CodeDaemonNotRunning       = "daemon_not_running"
	CodeDaemonElsewhere        = "daemon_elsewhere"
	CodeDaemonGone             = "daemon_gone"
	CodeDaemonNotResponding    = "daemon_not_responding"
	CodeNoRule                 = "script_no_rule"
	CodeToolNotOffered         = "script_tool_not_offered"
	CodeInvalidJSON            = "invalid_json"
	CodeInvalidValue           = "invalid_value"
	CodeUnsupportedParameter   = "unsupported_parameter"
	CodeNotRoot                = "not_root"
	CodeServiceNotOurs         = "service_not_ours"
	CodeServiceUser            = "service_user"
	CodeServiceSettings        = "service_settings"
	CodeModelNotFound          = "model_not_found"
	CodeWrongAPI               = "wrong_api"
	CodeNoCredit               = "no_credit"
	CodeCreditReserved         = "credit_reserved"
	CodeCreditLocked           = "credit_locked"
	CodeCapReached             = "cap_reached"
	CodeAttestationRequired    = "attestation_required"
	CodeAttestationFailed      = "attestation_failed"
	CodeProjectKeyRequired     = "project_key_required"
	CodeOwnKeyMissing          = "own_key_missing"
	CodeOwnKeyRefused          = "own_key_refused"
	CodeProviderBusy           = "provider_busy"
	CodeProviderTimeout        = "provider_timeout"
	CodeProviderUnavailable    = "provider_unavailable"
	CodeProviderUnreachable    = "provider_unreachable"
	CodeProviderRefused        = "provider_refused"
	CodeProviderError          = "provider_error"
	CodeForwarded              = "forwarded_call"
	CodeMemoryOff              = "memory_off"
	CodeBodyTooLarge           = "body_too_large"
	CodeUnsupportedMediaType   = "unsupported_media_type"
	CodeNoBluetooth            = "no_bluetooth"
	CodeRadioOff               = "radio_off"
	CodeNoPermission           = "no_permission"
	CodeNotInRange             = "not_in_range"
	CodeBusyElsewhere          = "busy_elsewhere"
	CodeNotPaired              = "not_paired"
	CodeServicesMissing        = "services_missing"
	CodeLost                   = "lost"
	CodeSeveralInRange         = "several_in_range"
	CodeSmallMTU               = "small_mtu"
	CodeNoWebBluetooth         = "no_web_bluetooth"
	CodeBrowserStuck           = "browser_stuck"
	CodeNotChosen              = "not_chosen"
)

// Info contains the properties of all errors with one of Codes.
type Info struct {
	Codes     codes
	Status    int  // HTTP status of a refusal; 0 if not sent over HTTP, and for status 500 of the control API
	Retryable bool // the same call may succeed later; an Error may differ
	// Negative means that a command answers no (exit code 1) rather than unknown (2).
	Negative bool
	// FixHint is the next step for agents if an Error contains none.
	FixHint string
	// Doc is the section of the documentation that explains the codes, in the form page#anchor.
	Doc string
	// Title and Meaning are set for codes of the HTTP API.
	Title, Meaning string
}

type codes = []string

// Sections of the documentation.
const (
	docHTTP        = "http-api#status-codes"
	docTools       = "tool-results#error-codes-of-tools"
	docGateway     = "managed-gateway#refusals"
	docAttestation = "attestation#refusals"
	docMemory      = "conversation-memory#export-and-erase"
	docScripts     = "assistant-scripts#answers"
	docRadio       = "real-glasses#if-they-do-not-connect"
	docFonts       = "cli#fonts"
	docCommands    = "cli#error-codes"
	docAdapters    = "adapters#add-it"
	docPassword    = "account#a-forgotten-password"
)

// Table returns the rows of the table. The rows of the HTTP API are first, ordered by status.
func Table() []Info { return table }

// Of returns the row of a code. For an unknown code, it returns a row without codes.
func Of(code string) Info {
	for _, info := range table {
		if slices.Contains(info.Codes, code) {
			return info
		}
	}
	return Info{}
}

// freshCode is the next step if a code can no longer be approved.
const freshCode = "Call createSimulatorSession again for a new code and show the user the new code and URL."

var table = []Info{
	{Codes: codes{CodeInvalidRequest}, Status: 400, Title: "Invalid request", Doc: docHTTP,
		Meaning: "a header, parameter or field is missing, unknown, repeated or out of bounds; `detail` names it"},
	{Codes: codes{CodeAuthRequired}, Status: 401, Title: "Account link required", Doc: docHTTP, Retryable: true,
		Negative: true, Meaning: "the install is not linked, or its token is unknown, expired or revoked; the body " +
			"contains a new device code"},
	{Codes: codes{CodeInvalidKey}, Status: 401, Title: "Unknown project key", Doc: docHTTP,
		Meaning: "the project key is missing, unknown or revoked, or its project is deleted"},
	{Codes: codes{CodeDeviceCodeDenied}, Status: 403, Title: "Device code denied", Doc: docHTTP, Retryable: true,
		Negative: true,
		FixHint:  "Ask the user whether to try again; if so, call createSimulatorSession for a new code.",
		Meaning:  "the user declined, the client cancelled the code, or the account that approved it is suspended"},
	{Codes: codes{CodePermissionDenied}, Status: 403, Title: "Permission denied", Doc: docHTTP, Negative: true,
		Meaning: "the account's owner does not grant this to agents"},
	{Codes: codes{CodeUnknownDeviceCode}, Status: 404, Title: "Unknown device code", Doc: docHTTP, Negative: true,
		FixHint: freshCode, Meaning: "the device code was never issued, or its token was already issued"},
	{Codes: codes{CodeNotFound}, Status: 404, Title: "Not found", Doc: docHTTP,
		Meaning: "there is no such route, session, project or provider, or it belongs to another account"},
	{Codes: codes{CodeMethodNotAllowed}, Status: 405, Title: "Method not allowed", Doc: docHTTP,
		Meaning: "the path supports only other methods; `Allow` lists them"},
	{Codes: codes{CodeConflict}, Status: 409, Title: "Conflict", Doc: docHTTP,
		Meaning: "the session is closed, or the account has 500 projects"},
	{Codes: codes{CodeVersionConflict}, Status: 409, Title: "Version conflict", Doc: docHTTP, Retryable: true,
		Meaning: "the record was changed since you read it; `currentVersion` is its version now"},
	{Codes: codes{CodeNotConfigured}, Status: 409, Title: "Not configured", Doc: docHTTP,
		Meaning: "the operator of this backend has not set this up"},
	{Codes: codes{CodeNotConnected}, Status: 409, Title: "Not connected", Doc: docHTTP, Retryable: true,
		Meaning: "no simulator page of the session is open"},
	{Codes: codes{CodeTooManyKeys}, Status: 409, Title: "Too many keys", Doc: docHTTP,
		Meaning: "the project has 50 live keys"},
	{Codes: codes{CodeDeviceCodeExpired}, Status: 410, Title: "Device code expired", Doc: docHTTP, Retryable: true,
		Negative: true, FixHint: freshCode, Meaning: "the device code has expired"},
	{Codes: codes{CodeRequestTooLarge}, Status: 413, Title: "Request too large", Doc: docHTTP,
		Meaning: "the body is over the limit of its route"},
	{Codes: codes{CodeUnsupportedMedia}, Status: 415, Title: "Unsupported media type", Doc: docHTTP,
		Meaning: "the body is not `application/json`, or its encoding is not gzip"},
	{Codes: codes{CodeRateLimited}, Status: 429, Title: "Too many requests", Doc: docHTTP, Retryable: true,
		FixHint: "Wait a moment, then repeat the call.",
		Meaning: "a limit is exhausted; wait the seconds in `Retry-After`"},
	{Codes: codes{CodeInternal}, Status: 500, Title: "Internal error", Doc: docHTTP, Retryable: true,
		Meaning: "the backend failed; its log contains the cause"},
	{Codes: codes{CodeUnavailable}, Status: 503, Title: "Unavailable", Doc: docHTTP, Retryable: true,
		Meaning: "the backend stores its maximum of usage events; wait the seconds in `Retry-After`"},
	{Codes: codes{CodeTimeout}, Status: 504, Title: "Timeout", Doc: docHTTP, Retryable: true,
		Meaning: "the simulator page did not answer in 10 seconds"},

	{Doc: docTools, Codes: codes{CodeInvalidConfig, CodeInvalidManifest, "unknown_tool", CodeUnknownTransport,
		CodeUnsupported, CodeStateUnwritable, CodeLoopbackUnreachable, CodeTooManySessions, CodeInvalidScenario,
		CodeNotAccepted, CodeFileUnreadable, CodeFileExists, CodeFileUnwritable, CodeClientFilesUnavailable,
		CodeGeneratedFileChanged, CodeFolderUnusable, CodeUnknownExample, CodeSandboxBlocked, CodeDaemonElsewhere,
		"unusable_directory", "unsafe_directory", "daemon_refused", CodeProgramMissing, CodeProtocolMismatch,
		CodeUnknownToolset, CodeTooManyClients, CodeTooManyUnread, CodeInvalidHandshake}},
	{Doc: docTools, Retryable: true, Codes: codes{CodeBusy, CodeCancelled, CodePollingAborted, CodeDaemonUnavailable,
		CodeDaemonNotResponding, "daemon_restarted", "input_closed"}},
	{Doc: docTools, Status: 429, Retryable: true, Codes: codes{CodeTooManyCalls, "too_many_connections"}},
	{Doc: docTools, Status: 409, Codes: codes{CodeLinkConflict}, Negative: true},
	{Doc: docTools, Status: 504, Codes: codes{CodeAuthTimeout}, Retryable: true, Negative: true},
	{Doc: docTools, Status: 502, Codes: codes{CodeBackendUnreachable}, Retryable: true,
		FixHint: "Check the network and that the backend is up (servicectl status), then repeat the call."},
	{Doc: docTools, Status: 502, Codes: codes{CodeInvalidResponse},
		FixHint: "Update the service: the backend and this version are not compatible."},
	{Doc: docTools, Status: 503, Codes: codes{CodeAdapterUnavailable}, Retryable: true,
		FixHint: "Run servicectl status to see what is wrong with the adapter, then repeat the call."},

	{Doc: docGateway, Status: 400, Codes: codes{CodeInvalidJSON, CodeInvalidValue, CodeUnsupportedParameter,
		CodeWrongAPI, CodeForwarded, CodeProviderRefused}},
	{Doc: docGateway, Status: 402, Codes: codes{CodeNoCredit, CodeCapReached}},
	{Doc: docGateway, Status: 403, Codes: codes{CodeCreditLocked, CodeOwnKeyMissing, CodeOwnKeyRefused}},
	{Doc: docMemory, Status: 403, Codes: codes{CodeMemoryOff}},
	{Doc: docAttestation, Status: 403, Codes: codes{CodeAttestationRequired, CodeAttestationFailed,
		CodeProjectKeyRequired}},
	{Doc: docGateway, Status: 404, Codes: codes{CodeModelNotFound}},
	{Doc: docGateway, Status: 413, Codes: codes{CodeBodyTooLarge}},
	{Doc: docGateway, Status: 415, Codes: codes{CodeUnsupportedMediaType}},
	{Doc: docGateway, Status: 429, Codes: codes{CodeCreditReserved}, Retryable: true},
	{Doc: docGateway, Status: 502, Codes: codes{CodeProviderError}, Retryable: true},
	{Doc: docGateway, Status: 503, Retryable: true, Codes: codes{CodeProviderBusy, CodeProviderUnavailable,
		CodeProviderUnreachable}},
	{Doc: docGateway, Status: 504, Codes: codes{CodeProviderTimeout}, Retryable: true},
	{Doc: docScripts, Status: 400, Codes: codes{CodeNoRule, CodeToolNotOffered}},

	{Doc: docRadio, Negative: true, Codes: codes{CodeNoBluetooth, CodeRadioOff, CodeNoPermission}},
	{Doc: docRadio, Status: 403, Codes: codes{CodeRefused}},
	{Doc: docRadio, Codes: codes{CodeNotInRange, CodeBusyElsewhere, CodeNotPaired, CodeServicesMissing, CodeLost,
		CodeSeveralInRange, CodeSmallMTU, CodeNoWebBluetooth, CodeBrowserStuck, CodeNotChosen}},

	{Doc: docFonts, Status: 400, Negative: true, Codes: codes{CodeFontDamaged, CodeFontUnsupported}},
	{Doc: docFonts, Status: 404, Negative: true, Codes: codes{CodeFontNotFound}},
	{Doc: docFonts, Status: 409, Negative: true, Codes: codes{CodeFontDuplicate, CodeFontTooMany}},
	{Doc: docFonts, Status: 413, Negative: true, Codes: codes{CodeFontTooLarge}},
	{Doc: docFonts, Codes: codes{CodeFontUnreadable}},
	{Doc: docAdapters, Status: 404, Negative: true, Codes: codes{CodeAdapterNotFound}},
	{Doc: docAdapters, Status: 409, Negative: true, Codes: codes{CodeAdapterNotUsable, CodeAdapterDuplicate,
		CodeAdapterTooMany}},
	{Doc: docAdapters, Negative: true, Codes: codes{CodeNotConfirmed}},
	{Doc: docAdapters, Status: 403, Codes: codes{CodeAdapterNotApproved}},
	{Doc: docAdapters, Codes: codes{CodeAdapterUnreadable}},
	{Doc: docPassword, Status: 400, Negative: true, Codes: codes{CodePasswordNotAccepted}},
	{Doc: docPassword, Status: 403, Negative: true, Codes: codes{CodeAccountSuspended}},
	{Doc: docPassword, Status: 404, Negative: true, Codes: codes{CodeAccountNotFound}},
	{Doc: docPassword, Status: 409, Negative: true, Codes: codes{CodeNotEmbedded}},
	{Doc: docCommands, Negative: true, Codes: codes{CodeAgentNotFound, CodePageNotFound, CodeServiceNotInstalled}},
	{Doc: docCommands, Codes: codes{CodeNoApp, CodeReleasesNotConfigured, CodeReleasesUntrusted, CodeReleasesStale,
		CodeVersionUnknown, CodeNotStateDirectory, CodeAuthFileWriteFailed, CodeNoServiceManager,
		CodeServiceManagerRefused, CodeServiceFile, CodeServiceUnsupported, CodeNotRoot, CodeServiceNotOurs,
		CodeServiceUser, CodeServiceSettings, "bad_flag", "service_failed", "no_folder", "log_unreadable", "usage"}},
	{Doc: docCommands, Status: 413, Codes: codes{"too_large"}},
	{Doc: docCommands, Status: 500, Codes: codes{"internal"}},
	{Doc: docCommands, Retryable: true, Codes: codes{CodeDaemonGone, CodeDaemonNotRunning, "service_not_up",
		CodeReleasesUnreachable}},
}
