package passkey

import (
	"encoding/base64"
	"encoding/json"
	"slices"

	"github.com/go-webauthn/webauthn/webauthn"
)

// The WebAuthn library requires these methods of an account.

// WebAuthnID returns the account ID, which authenticators store and send back.
func (h Holder) WebAuthnID() []byte { return []byte(h.ID) }

// WebAuthnName returns the name that the authenticator shows.
func (h Holder) WebAuthnName() string { return h.Email }

// WebAuthnDisplayName returns the name that the authenticator shows.
func (h Holder) WebAuthnDisplayName() string { return h.Email }

// WebAuthnCredentials returns the credentials that can be decoded. The others cannot be used to sign in.
func (h Holder) WebAuthnCredentials() []webauthn.Credential {
	var all []webauthn.Credential
	for _, p := range h.Passkeys {
		var c webauthn.Credential
		if json.Unmarshal(p.Credential, &c) == nil {
			c.Authenticator.SignCount = p.SignCount
			all = append(all, c)
		}
	}
	return all
}

// respondent is a holder who signs in with a passkey that may be backed up. The library refuses a passkey whose backup
// flag differs from its value at registration. Password managers change the flag, for example after an import. This
// package does not depend on the flag, so it accepts both values.
type respondent struct {
	Holder
	eligible bool
}

// WebAuthnCredentials returns the credentials as the response describes them.
func (r respondent) WebAuthnCredentials() []webauthn.Credential {
	all := r.Holder.WebAuthnCredentials()
	for i := range all {
		all[i].Flags.BackupEligible = r.eligible
	}
	return all
}

func (h Holder) with(credentialID []byte) *Stored {
	id := base64.RawURLEncoding.EncodeToString(credentialID)
	i := slices.IndexFunc(h.Passkeys, func(p Stored) bool { return p.CredentialID == id })
	if i < 0 {
		return nil
	}
	return &h.Passkeys[i]
}
