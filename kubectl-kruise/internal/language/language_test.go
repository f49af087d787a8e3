package language

import "testing"

// English texts are those of the code, and the first variable that is set decides.
func TestIsEnglish(t *testing.T) {
	for name, row := range map[string]struct {
		variables map[string]string
		want      bool
	}{
		"without a language":                {nil, true},
		"the language of the standard":      {map[string]string{"LANG": "C.UTF-8"}, true},
		"English":                           {map[string]string{"LANG": "en_GB.UTF-8"}, true},
		"another language":                  {map[string]string{"LANG": "ja_JP.UTF-8"}, false},
		"all messages in another language":  {map[string]string{"LANG": "C", "LC_ALL": "de_DE.UTF-8"}, false},
		"the messages alone are in English": {map[string]string{"LANG": "fr_FR.UTF-8", "LC_MESSAGES": "C"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := isEnglish(func(name string) string { return row.variables[name] }); got != row.want {
				t.Errorf("got %t", got)
			}
		})
	}
}
