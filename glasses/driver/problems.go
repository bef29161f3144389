package driver

import "github.com/service-dev/service/internal/problem"

// Problems returns all codes.
func Problems() []string {
	return []string{
		problem.CodeNoBluetooth, problem.CodeRadioOff, problem.CodeNoPermission, problem.CodeNotInRange,
		problem.CodeBusyElsewhere,
		problem.CodeNotPaired, problem.CodeServicesMissing, problem.CodeTimeout, problem.CodeLost, problem.CodeRefused,
		problem.CodeSeveralInRange,
		problem.CodeSmallMTU, problem.CodeNoWebBluetooth, problem.CodeBrowserStuck, problem.CodeNotChosen,
		problem.CodeCancelled,
	}
}

// problemTexts maps each code to its message and next step.
var problemTexts = map[string][2]string{
	problem.CodeNoWebBluetooth: {"this browser cannot use Bluetooth",
		"Open the address of this page in Chrome or Edge; on Linux run `servicectl glasses connect` instead, or start " +
			"them with --enable-features=WebBluetooth."},
	problem.CodeBrowserStuck: {"the browser's Bluetooth no longer responds to this page",
		"Reload the page, and choose the glasses again. If they do not connect, restart the browser."},
	problem.CodeNoBluetooth: {"the browser finds no Bluetooth on this computer, or it is switched off",
		"Switch Bluetooth on, or use a USB adapter, and press the button again."},
	problem.CodeRadioOff: {"Bluetooth is switched off",
		"Switch it on; glasses that were connected then connect by themselves."},
	problem.CodeNoPermission: {"the browser does not let this page use Bluetooth",
		"Allow Bluetooth devices for this page in the browser's site settings, and in the system's settings for the " +
			"browser; on a managed computer its administrator may have to allow it."},
	problem.CodeCancelled: {"no glasses were chosen, and nothing has changed",
		"Press the button again and choose them in the browser's list; if they are not in it, open the case and " +
			"disconnect the phone's app from them."},
	problem.CodeNotChosen: {"the glasses have not been chosen in the browser yet",
		"Choose them on the page that is open in the browser."},
	problem.CodeNotInRange: {"the glasses do not answer",
		"Put them in the open case next to this computer, and disconnect the phone's app from them, or switch the " +
			"phone's Bluetooth off."},
	problem.CodeBusyElsewhere: {"something else is connected to the glasses",
		"Close the phone's app, and other pages and programs that use them."},
	problem.CodeNotPaired: {"the glasses accept only paired computers",
		"Set them to pairing mode, accept the computer's question, and press the button again; if they were paired " +
			"before, remove them in the computer's Bluetooth settings first."},
	problem.CodeServicesMissing: {"this device does not respond like these glasses",
		"Choose another device from the list; if it is the right one, remove it in the computer's Bluetooth settings " +
			"and press the button again."},
	problem.CodeTimeout: {"the glasses did not answer in time", "Bring them nearer; the service tries again."},
	problem.CodeLost:    {"the connection to the glasses was lost", "Bring them near; they connect again by themselves."},
	problem.CodeRefused: {"the glasses refused what was sent", "Switch them off and on."},
	problem.CodeSmallMTU: {"the connection carries too few bytes at once for these glasses",
		"Update the browser and the computer's Bluetooth driver."},
	problem.CodeSeveralInRange: {"several glasses fit", "Name one of them."},
}

// ProblemText returns the texts that a page shows for a problem: the message and the next step. The page
// capitalises the message and adds a full stop.
func ProblemText(code string) (message, fixHint string) {
	text := problemTexts[code]
	return text[0], text[1]
}
