// Package language loads kubectl's translations for those who read them. kubectl translates its help while the program
// starts, and packs 350 kB of English texts for that, which are those of the code: more than a third of the time that a
// command without a cluster takes.
//
// Its import path sorts before those of kubectl's packages, so that it is initialized before the first of them asks for
// a text.
package language

import (
	"os"
	"strings"

	"k8s.io/kubectl/pkg/util/i18n"
)

//nolint:gochecknoinits // i18n takes the function before the first package asks for a text, and from no other place
func init() { _ = i18n.SetLoadTranslationsFunc(load) }

// load loads the translations of the user's language.
func load() error {
	if isEnglish(os.Getenv) { //nolint:forbidigo // i18n reads the language from the environment, too
		return nil
	}
	return i18n.LoadTranslations("kubectl", nil)
}

// isEnglish reports whether the environment asks for no other language, by the variables that i18n reads.
func isEnglish(variable func(string) string) bool {
	for _, name := range []string{"LC_ALL", "LC_MESSAGES", "LANG"} {
		if value := variable(name); value != "" {
			language, _, _ := strings.Cut(value, ".")
			return language == "C" || language == "POSIX" || strings.HasPrefix(language, "en")
		}
	}
	return true
}
