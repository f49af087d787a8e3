package failure

import (
	"errors"
	"strings"
)

// mostText is how many bytes of a text are reported.
const mostText = 1000

// BriefText returns a text that fits into a condition and an event.
func BriefText(text string) string {
	if len(text) <= mostText {
		return text
	}
	return strings.ToValidUTF8(text[:mostText], "") + "..."
}

// Brief returns an error whose text fits into a condition and an event. The error of a field names its value, which a
// user may have made as large as the object. A short error stays as it is.
func Brief(err error) error {
	if err == nil || len(err.Error()) <= mostText {
		return err
	}
	return errors.New(BriefText(err.Error()))
}
