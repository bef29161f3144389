package driver

// Problems of a link, as codes. Carriers report those of the radio; drivers add those of the glasses' own answers.
const (
	ProblemNoBluetooth     = "no_bluetooth"     // this machine has no Bluetooth
	ProblemRadioOff        = "radio_off"        // Bluetooth is switched off
	ProblemNoPermission    = "no_permission"    // this user or page may not use Bluetooth
	ProblemNotInRange      = "not_in_range"     // no fitting peripheral was found
	ProblemBusyElsewhere   = "busy_elsewhere"   // the peripheral is connected to something else
	ProblemNotPaired       = "not_paired"       // the peripheral accepts only paired computers
	ProblemServicesMissing = "services_missing" // it does not have the service of this kind of glasses
	ProblemTimeout         = "timeout"          // it did not answer in time
	ProblemLost            = "lost"             // the link broke
	ProblemRefused         = "refused"          // it answered that it did not do what was asked
	ProblemSeveral         = "several_in_range" // more than one pair fits
	ProblemSmallMTU        = "small_mtu"        // the link carries too few bytes at once for these glasses
	ProblemNoWebBluetooth  = "no_web_bluetooth" // this browser has no Web Bluetooth
	ProblemNotChosen       = "not_chosen"       // the person has to choose the peripheral in the browser
	ProblemCancelled       = "cancelled"        // the person closed the browser's list
)

// Problems returns the codes.
func Problems() []string {
	return []string{
		ProblemNoBluetooth, ProblemRadioOff, ProblemNoPermission, ProblemNotInRange, ProblemBusyElsewhere,
		ProblemNotPaired, ProblemServicesMissing, ProblemTimeout, ProblemLost, ProblemRefused, ProblemSeveral,
		ProblemSmallMTU, ProblemNoWebBluetooth, ProblemNotChosen, ProblemCancelled,
	}
}
