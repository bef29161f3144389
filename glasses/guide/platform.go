package guide

// NotInThisVersion lists features that agents must not promise to users.
const NotInThisVersion = "Real glasses of a published app and the hosted assistant are not in this version: " +
	"no app can be published yet."

// Platforms returns the platforms for which apps can be built.
func Platforms() []string { return []string{"ios", "android", "web", "desktop"} }

// Builds to which a declaration may be limited.
const (
	WhenAlways    = "always"
	WhenSimulator = "simulator" // only debug builds, which attach to a simulator on the developer's machine
	WhenGlasses   = "glasses"   // only with real glasses
)

// Declaration is an entry that an app needs in one of its platform's files.
type Declaration struct {
	File  string `json:"file"`
	Key   string `json:"key"`
	Value string `json:"value"`
	// Capabilities lists the capabilities that need the entry. If it is empty, every app needs it.
	Capabilities []string `json:"capabilities"`
	When         string   `json:"when"`
	Why          string   `json:"why"`
}

// Declarations returns the entries that an app for a platform must declare, or nil for an unknown platform.
func Declarations(platform string) []Declaration {
	return map[string][]Declaration{"ios": ios(), "android": android(), "web": web(), "desktop": desktop()}[platform]
}

var hears = []string{Microphone, Transcription}

func ios() []Declaration {
	const file = "Info.plist"
	return []Declaration{
		{file, "NSMicrophoneUsageDescription", "why the app listens, in a sentence for people", hears, WhenAlways,
			"without it iOS ends the app at the first use of a microphone"},
		{file, "NSSpeechRecognitionUsageDescription", "why speech becomes text, in a sentence for people",
			[]string{Transcription}, WhenAlways, "speech recognition is a separate permission"},
		{file, "NSCameraUsageDescription", "why the app takes pictures, in a sentence for people", []string{Camera},
			WhenAlways, "needed for pictures of any camera, including one on glasses that the phone relays"},
		{file, "NSBluetoothAlwaysUsageDescription", "why the app talks to the glasses, in a sentence for people", nil,
			WhenGlasses, "the glasses connect over Bluetooth"},
		{file, "UIBackgroundModes", "bluetooth-central, audio", nil, WhenGlasses,
			"without it the connection stops when the screen of the phone in the pocket turns off"},
		{file, "NSAppTransportSecurity", "NSAllowsLocalNetworking = true", nil, WhenSimulator,
			"the simulator's address is ws:// on this machine"},
	}
}

func android() []Declaration {
	const file = "AndroidManifest.xml"
	return []Declaration{
		{file, "android.permission.INTERNET", "uses-permission", nil, WhenAlways, "sessions are WebSockets"},
		{file, "android.permission.RECORD_AUDIO", "uses-permission", hears, WhenAlways,
			"needed for sound and for speech; ask at run time"},
		{file, "android.permission.CAMERA", "uses-permission", []string{Camera}, WhenAlways,
			"needed for pictures; ask at run time"},
		{file, "android.permission.BLUETOOTH_CONNECT", "uses-permission", nil, WhenGlasses,
			"the glasses connect over Bluetooth; ask at run time since Android 12"},
		{file, "android.permission.BLUETOOTH_SCAN", "uses-permission with usesPermissionFlags=neverForLocation", nil,
			WhenGlasses, "finding the glasses; the flag avoids the location permission"},
		{file, "android.permission.FOREGROUND_SERVICE_CONNECTED_DEVICE",
			"uses-permission, with a service of type connectedDevice", nil, WhenGlasses,
			"keeps the connection while the screen is off"},
		{file, "android.permission.FOREGROUND_SERVICE_MICROPHONE",
			"uses-permission, with a service of type microphone", hears, WhenGlasses,
			"listening while the screen is off"},
		{"res/xml/network_security_config.xml", "domain-config cleartextTrafficPermitted",
			"true for localhost and 127.0.0.1, debug builds only", nil, WhenSimulator,
			"the simulator's address is ws:// on this machine; `adb reverse tcp:PORT tcp:PORT` makes it reachable " +
				"as 127.0.0.1 from a device or an emulator"},
	}
}

func web() []Declaration {
	return []Declaration{
		{"HTTP header", "Permissions-Policy", "microphone=(self)", hears, WhenAlways,
			"a stricter policy of the site or of a frame around it denies access without a prompt"},
		{"HTTP header", "Permissions-Policy", "camera=(self)", []string{Camera}, WhenAlways,
			"a stricter policy of the site or of a frame around it denies access without a prompt"},
		{"HTTP header", "Content-Security-Policy", "connect-src with the endpoint's address", nil, WhenAlways,
			"needed when the site has such a policy"},
		{"origin", "localhost or https", "serve the page from http://localhost in development", nil, WhenSimulator,
			"a local session accepts only local pages, and browsers require a secure origin for the microphone"},
	}
}

func desktop() []Declaration {
	return []Declaration{
		{"macOS entitlements", "com.apple.security.network.client", "true", nil, WhenAlways,
			"only when the app runs in the macOS sandbox"},
		{"macOS entitlements", "com.apple.security.device.audio-input", "true", hears, WhenGlasses,
			"only with the hardened runtime"},
		{"macOS Info.plist", "NSBluetoothAlwaysUsageDescription",
			"why the app talks to the glasses, in a sentence for people", nil, WhenGlasses,
			"the glasses connect over Bluetooth"},
		{"Windows package manifest", "DeviceCapability bluetooth", "declared", nil, WhenGlasses,
			"only for packaged apps"},
	}
}

// Ask describes how an app requests access to a part of the glasses, and how it continues if the wearer denies it.
type Ask struct {
	Part    string `json:"part"`
	When    string `json:"when"`
	Refused string `json:"refused"`
}

// Asks returns how to request access to each part that a wearer may deny.
func Asks() []Ask {
	return []Ask{
		{"camera", "at the first picture, never at start-up; explain first what it is for",
			"the command answers permission_denied: say that pictures are off and continue without, do not ask again " +
				"automatically"},
		{"microphone", "when the user starts a feature that listens, never at start-up",
			"the command answers permission_denied: offer the same through an input (a button, a list)"},
		{"speech", "there is no dialog: the wearer mutes speech in the glasses' settings",
			"the command answers permission_denied: show the text on the panel if there is one"},
	}
}
