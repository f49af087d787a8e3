package failure

import (
	"errors"
	"fmt"
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

// Names returns a text with the first three of some names, and how many more there are.
func Names(names []string) string {
	const most = 3
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
