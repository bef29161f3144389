// Package credential defines the kinds of credentials that the backend issues. Each kind has its own prefix, which
// secret scanners and this service's logs and telemetry recognise.
package credential

// Prefixes of credentials, each of three letters and an underscore.
const (
	DeviceCode = "sdc_"
	Token      = "svc_"
	ProjectKey = "spk_"
	Session    = "sst_"
	Browser    = "swb_"
	Mail       = "sml_" // in a mailed link
	Credential = "scl_" // in a link for pasting a credential
	Gateway    = "sgt_" // for the apps of a session, to access the AI gateway
	Attested   = "sat_" // for an attested install, to access the AI gateway
)

// prefixLength is the length of each prefix in bytes.
const prefixLength = len(Token)

// Prefixes returns all prefixes.
func Prefixes() []string {
	return []string{DeviceCode, Token, ProjectKey, Session, Browser, Mail, Credential, Gateway, Attested}
}

// HasPrefix reports whether s begins with one of the prefixes, ignoring case. It does not allocate.
func HasPrefix[T ~string | ~[]byte](s T) bool {
	if len(s) < prefixLength || s[prefixLength-1] != '_' {
		return false
	}
	switch [3]byte{s[0] | 0x20, s[1] | 0x20, s[2] | 0x20} {
	case letters(DeviceCode), letters(Token), letters(ProjectKey), letters(Session), letters(Browser), letters(Mail),
		letters(Credential), letters(Gateway), letters(Attested):
		return true
	}
	return false
}

func letters(prefix string) [3]byte { return [3]byte{prefix[0], prefix[1], prefix[2]} }
