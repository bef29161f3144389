package account

import (
	"encoding/json"
	"errors"
	"regexp"
	"time"
)

// FileName is the file's name inside the state directory.
const FileName = "auth.json"

// maxFile is the maximum size of the file, in bytes.
const maxFile = 64 << 10

// maxToken is the maximum length of a token, in bytes. It also applies to a token in a backend's response.
const maxToken = 4096

// maxAccount and maxScope are the maximum lengths of an account ID and a scope, in bytes.
const (
	maxAccount = 64
	maxScope   = 256
)

// maxURL is the maximum length of a backend's address, in bytes.
const maxURL = 2 << 10

// The field formats match those in a backend's response, because the values are sent in headers and shown on terminals
// and to agents. Lengths are checked separately, because counted repetitions in regular expressions use much memory.
var (
	tokenForm   = regexp.MustCompile(`^[A-Za-z0-9._~+/-]+=*$`)
	accountForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:@/+-]*$`)
	scopeForm   = regexp.MustCompile(`^[!-~ ]*$`)
	backendForm = regexp.MustCompile(`^[!-~]*$`)
)

// authFile is the content of auth.json: the fields of a token response, and backendUrl.
type authFile struct {
	AuthToken  string  `json:"authToken"`
	AccountID  string  `json:"accountId"`
	LinkedAt   string  `json:"linkedAt"`
	ExpiresAt  *string `json:"expiresAt"`
	Scope      string  `json:"scope"`
	BackendURL string  `json:"backendUrl"`
}

// parse parses auth.json. Its errors name fields but never contain their values.
func parse(data []byte) (Link, error) {
	var f *authFile
	if err := json.Unmarshal(data, &f); err != nil {
		var wrong *json.UnmarshalTypeError
		if errors.As(err, &wrong) && wrong.Field != "" {
			return Link{}, errors.New("field " + wrong.Field + " has the wrong type")
		}
		return Link{}, errors.New("it is not a JSON object")
	}
	if f == nil {
		return Link{}, errors.New("it is not a JSON object")
	}
	switch {
	case !tokenForm.MatchString(f.AuthToken) || len(f.AuthToken) > maxToken:
		return Link{}, errors.New("field authToken must be a token")
	case !accountForm.MatchString(f.AccountID) || len(f.AccountID) > maxAccount:
		return Link{}, errors.New("field accountId must be an account id")
	case !scopeForm.MatchString(f.Scope) || len(f.Scope) > maxScope:
		return Link{}, errors.New("field scope must be a scope")
	case !backendForm.MatchString(f.BackendURL) || len(f.BackendURL) > maxURL:
		return Link{}, errors.New("field backendUrl must be an address")
	}
	l := Link{
		State: Linked, AuthToken: Secret(f.AuthToken), AccountID: f.AccountID, Tier: TierFree,
		Scope: f.Scope, BackendURL: f.BackendURL,
	}
	var err error
	if f.LinkedAt != "" {
		if l.LinkedAt, err = time.Parse(time.RFC3339, f.LinkedAt); err != nil {
			return Link{}, errors.New("field linkedAt must be a time")
		}
	}
	if f.ExpiresAt != nil && *f.ExpiresAt != "" {
		at, err := time.Parse(time.RFC3339, *f.ExpiresAt)
		if err != nil {
			return Link{}, errors.New("field expiresAt must be a time")
		}
		l.ExpiresAt = &at
	}
	return l, nil
}

// withBackend adds the backend's address to the content of a file and leaves the other fields
// unchanged.
func withBackend(before []byte, address string) ([]byte, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(before, &fields); err != nil {
		return nil, err
	}
	value, err := json.Marshal(address)
	if err != nil {
		return nil, err
	}
	fields["backendUrl"] = value
	data, err := json.MarshalIndent(fields, "", "  ")
	if err != nil {
		return nil, err
	}
	data = append(data, '\n')
	if l, err := parse(data); err != nil || l.BackendURL != address || len(data) > maxFile {
		return nil, errors.New("its field backendUrl cannot be set")
	}
	return data, nil
}

// format merges the link into the file's previous content, so that unknown fields survive. Content that is not an
// object is replaced.
func format(before []byte, l Link) ([]byte, error) {
	fields := map[string]json.RawMessage{}
	if json.Unmarshal(before, &fields) != nil || fields == nil {
		fields = map[string]json.RawMessage{}
	}
	f := authFile{
		AuthToken: l.AuthToken.Reveal(), AccountID: l.AccountID, LinkedAt: l.LinkedAt.UTC().Format(time.RFC3339),
		Scope: l.Scope, BackendURL: l.BackendURL,
	}
	if l.ExpiresAt != nil {
		at := l.ExpiresAt.UTC().Format(time.RFC3339)
		f.ExpiresAt = &at
	}
	known, err := json.Marshal(f)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(known, &fields); err != nil {
		return nil, err
	}
	data, err := json.MarshalIndent(fields, "", "  ")
	return append(data, '\n'), err
}
