package glassespage

import (
	"cmp"

	"github.com/service-dev/service/proto/glasses/driver"
)

// Problem is what keeps a link from being open, for a person.
type Problem struct {
	Code    string `json:"code"` // of package driver
	Message string `json:"message"`
	FixHint string `json:"fixHint"`
}

func (p *Problem) Error() string { return p.Message }

// texts are the message and the next step for each code.
var texts = map[string][2]string{
	driver.ProblemNoWebBluetooth: {"this browser cannot use Bluetooth",
		"open the address of this page in Chrome or Edge; on Linux they need the flag --enable-features=WebBluetooth"},
	driver.ProblemNoBluetooth: {"the browser finds no Bluetooth on this computer, or it is switched off",
		"switch Bluetooth on, or use a USB adapter, and press the button again"},
	driver.ProblemRadioOff: {"Bluetooth is switched off",
		"switch it on; glasses that were connected then connect by themselves"},
	driver.ProblemNoPermission: {"the browser does not let this page use Bluetooth",
		"allow Bluetooth devices for this page in the browser's site settings, and in the system's settings for the " +
			"browser; on a managed computer its administrator may have to allow it"},
	driver.ProblemCancelled: {"no glasses were chosen",
		"press the button again and choose them in the browser's list; if they are not in it, open the case and " +
			"disconnect the phone's app from them"},
	driver.ProblemNotChosen: {"the glasses are not chosen in the browser yet",
		"choose them on the page that is open in the browser"},
	driver.ProblemNotInRange: {"the glasses do not answer",
		"put them in the open case next to this computer, and disconnect the phone's app from them, or switch the " +
			"phone's Bluetooth off"},
	driver.ProblemBusyElsewhere: {"something else is connected to the glasses",
		"close the phone's app, and other pages and programs that use them"},
	driver.ProblemNotPaired: {"the glasses accept only paired computers",
		"set them to pairing mode, accept the computer's question, and press the button again; if they were paired " +
			"before, remove them in the computer's Bluetooth settings first"},
	driver.ProblemServicesMissing: {"this device does not answer like these glasses",
		"choose another device of the list; if it is the right one, remove it in the computer's Bluetooth settings " +
			"and press the button again"},
	driver.ProblemTimeout: {"the glasses did not answer in time", "bring them nearer; they are tried again"},
	driver.ProblemLost:    {"the connection to the glasses was lost", "bring them near; they connect again by themselves"},
	driver.ProblemRefused: {"the glasses refused what was sent", "switch them off and on"},
	driver.ProblemSmallMTU: {"the connection carries too few bytes at once for these glasses",
		"update the browser and the computer's Bluetooth driver"},
	driver.ProblemSeveral: {"several glasses fit", "name one of them"},
}

// problem returns the problem with a code; an empty one counts as a lost connection.
func problem(code string) *Problem {
	code = cmp.Or(code, driver.ProblemLost)
	return &Problem{Code: code, Message: texts[code][0], FixHint: texts[code][1]}
}
