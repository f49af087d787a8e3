// Package document reads the commands of documents, so that tests run what users are asked to type.
//
// When not to use it: for the output that a document shows, which differs from run to run.
package document

import (
	"fmt"
	"os"
	"regexp"
	"strings"
)

// Commands returns the arguments of each kubectl in the console blocks of a document, in order. Single quotes keep a
// word together. Paths below config/ are made relative to the caller, who is two directories below the root.
func Commands(path string) ([][]string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read document: %w", err)
	}
	all := parse(string(text))
	if len(all) == 0 {
		return nil, fmt.Errorf("%s has no command", path)
	}
	return all, nil
}

func parse(text string) [][]string {
	word := regexp.MustCompile(`'[^']*'|\S+`)
	var all [][]string
	for line := range strings.Lines(text) {
		after, found := strings.CutPrefix(strings.TrimLeft(line, " "), "$ kubectl ")
		if !found {
			continue
		}
		words := word.FindAllString(after, -1)
		for i := range words {
			words[i] = strings.Trim(words[i], "'")
			if strings.HasPrefix(words[i], "config/") {
				words[i] = "../../" + words[i]
			}
		}
		all = append(all, words)
	}
	return all
}
