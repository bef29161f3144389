package driver

// Codes for problems of a link. Carriers report radio problems; drivers add problems that the glasses themselves
// report.
const (
	ProblemNoBluetooth     = "no_bluetooth"     // this machine has no Bluetooth
	ProblemRadioOff        = "radio_off"        // Bluetooth is switched off
	ProblemNoPermission    = "no_permission"    // this user or page may not use Bluetooth
	ProblemNotInRange      = "not_in_range"     // no matching peripheral was found
	ProblemBusyElsewhere   = "busy_elsewhere"   // the peripheral is connected to another device
	ProblemNotPaired       = "not_paired"       // the peripheral accepts only paired computers
	ProblemServicesMissing = "services_missing" // the peripheral lacks the service of this kind of glasses
	ProblemTimeout         = "timeout"          // the peripheral did not answer in time
	ProblemLost            = "lost"             // the link broke
	ProblemRefused         = "refused"          // the peripheral refused a request
	ProblemSeveral         = "several_in_range" // more than one pair matches
	ProblemSmallMTU        = "small_mtu"        // the MTU of the link is too small for these glasses
	ProblemNoWebBluetooth  = "no_web_bluetooth" // this browser has no Web Bluetooth
	ProblemBrowserStuck    = "browser_stuck"    // the browser no longer answers the page's calls
	ProblemNotChosen       = "not_chosen"       // the user has to choose the peripheral in the browser
	ProblemCancelled       = "cancelled"        // the user closed the browser's list
)

// Problems returns all codes.
func Problems() []string {
	return []string{
		ProblemNoBluetooth, ProblemRadioOff, ProblemNoPermission, ProblemNotInRange, ProblemBusyElsewhere,
		ProblemNotPaired, ProblemServicesMissing, ProblemTimeout, ProblemLost, ProblemRefused, ProblemSeveral,
		ProblemSmallMTU, ProblemNoWebBluetooth, ProblemBrowserStuck, ProblemNotChosen, ProblemCancelled,
	}
}

// problemTexts maps each code to its message and next step.
var problemTexts = map[string][2]string{
	ProblemNoWebBluetooth: {"this browser cannot use Bluetooth",
		"open the address of this page in Chrome or Edge; on Linux run `servicectl glasses connect` instead, or start " +
			"them with --enable-features=WebBluetooth"},
	ProblemBrowserStuck: {"the browser's Bluetooth no longer answers this page",
		"reload the page, and choose the glasses again"},
	ProblemNoBluetooth: {"the browser finds no Bluetooth on this computer, or it is switched off",
		"switch Bluetooth on, or use a USB adapter, and press the button again"},
	ProblemRadioOff: {"Bluetooth is switched off",
		"switch it on; glasses that were connected then connect by themselves"},
	ProblemNoPermission: {"the browser does not let this page use Bluetooth",
		"allow Bluetooth devices for this page in the browser's site settings, and in the system's settings for the " +
			"browser; on a managed computer its administrator may have to allow it"},
	ProblemCancelled: {"no glasses were chosen, and nothing has changed",
		"press the button again and choose them in the browser's list; if they are not in it, open the case and " +
			"disconnect the phone's app from them"},
	ProblemNotChosen: {"the glasses are not chosen in the browser yet",
		"choose them on the page that is open in the browser"},
	ProblemNotInRange: {"the glasses do not answer",
		"put them in the open case next to this computer, and disconnect the phone's app from them, or switch the " +
			"phone's Bluetooth off"},
	ProblemBusyElsewhere: {"something else is connected to the glasses",
		"close the phone's app, and other pages and programs that use them"},
	ProblemNotPaired: {"the glasses accept only paired computers",
		"set them to pairing mode, accept the computer's question, and press the button again; if they were paired " +
			"before, remove them in the computer's Bluetooth settings first"},
	ProblemServicesMissing: {"this device does not answer like these glasses",
		"choose another device of the list; if it is the right one, remove it in the computer's Bluetooth settings " +
			"and press the button again"},
	ProblemTimeout: {"the glasses did not answer in time", "bring them nearer; they are tried again"},
	ProblemLost:    {"the connection to the glasses was lost", "bring them near; they connect again by themselves"},
	ProblemRefused: {"the glasses refused what was sent", "switch them off and on"},
	ProblemSmallMTU: {"the connection carries too few bytes at once for these glasses",
		"update the browser and the computer's Bluetooth driver"},
	ProblemSeveral: {"several glasses fit", "name one of them"},
}

// ProblemText returns the texts that a page shows for a problem: the message and the next step. The page adds capital
// letters and full stops.
func ProblemText(code string) (message, fixHint string) {
	text := problemTexts[code]
	return text[0], text[1]
}
