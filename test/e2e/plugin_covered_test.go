//go:build e2e

package e2e

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// testCovered looks for commands of the binary that no test has run, for flags of commands that kubectl does not have,
// and for flags that the document shows.
func (p *plugin) testCovered(t *testing.T) {
	if t.Failed() {
		return
	}
	calls := slices.Clone(p.ran) // without those for the help
	tree := p.tree(t)
	ran := map[string]map[string]bool{}
	for _, words := range calls {
		name, rest := tree.command(words)
		if ran[name] == nil {
			ran[name] = map[string]bool{}
		}
		for _, flag := range flagsOf(rest) {
			ran[name][tree[name].long(flag)] = true
		}
	}
	leaves := 0
	for _, name := range slices.Sorted(maps.Keys(tree)) {
		if len(tree[name].below) > 0 {
			continue
		}
		if leaves++; ran[name] == nil {
			t.Errorf("no test runs kubectl kruise %s", name)
		}
		for _, flag := range tree[name].flags {
			if notOfKubectl(name) && !everywhere(flag) && ran[name] != nil && !ran[name][flag] {
				t.Errorf("no test runs kubectl kruise %s --%s", name, flag)
			}
		}
	}
	shown := 0
	for _, words := range documented(t) {
		name, rest := tree.command(words)
		if name == "" {
			continue
		}
		for _, flag := range flagsOf(rest) {
			if shown++; !ran[name][tree[name].long(flag)] {
				t.Errorf("no test runs kubectl kruise %s with %s, which the document shows", name, flag)
			}
		}
	}
	t.Logf("%d calls of %d commands, and of %d flags in the document", len(calls), leaves, shown)
	if leaves < 60 || shown < 5 {
		t.Error("the help or the document was not understood")
	}
}

// notOfKubectl reports whether kubectl does not have a command.
func notOfKubectl(name string) bool {
	return slices.Contains([]string{
		"create ContainerRecreateRequest", "create broadcastJob", "rollout approve", "describe rollout", "migrate",
		"scaledown", "protect", "unprotect", "restart", "pull", "pause-all", "diagnose", "plan", "status", "watch", "explain",
		"dashboard",
	}, name)
}

// everywhere reports whether kubectl's own code has a flag, which names or prints objects of all commands.
func everywhere(flag string) bool {
	return slices.Contains([]string{
		"filename", "kustomize", "recursive", "selector", "output", "template", "allow-missing-template-keys",
		"show-managed-fields", "field-manager", "save-config", "validate",
	}, flag)
}

// helpOf is what the help says about a command.
type helpOf struct {
	below, flags []string
	short        map[string]string
}

// long returns the name of a flag, without dashes.
func (h helpOf) long(flag string) string {
	if name := h.short[flag]; name != "" {
		return name
	}
	return strings.TrimLeft(flag, "-")
}

// commandTree is the help of all commands, by the words of the command.
type commandTree map[string]helpOf

// command returns the command that words begin with, with all of its subcommands, and the words that follow.
func (c commandTree) command(words []string) (name string, rest []string) {
	for i := range words {
		next := strings.Join(words[:i+1], " ")
		if _, is := c[next]; !is {
			return name, words[i:]
		}
		name = next
	}
	return name, nil
}

func (p *plugin) tree(t *testing.T) commandTree {
	t.Helper()
	tree := commandTree{}
	waiting := []string{""}
	for len(waiting) > 0 {
		name := waiting[0]
		waiting = waiting[1:]
		s := &space{plugin: p}
		h := readHelp(s.exits(t, 0, "", append(strings.Fields(name), "--help")...).out)
		if name != "" {
			tree[name] = h
		}
		for _, below := range h.below {
			waiting = append(waiting, strings.TrimSpace(name+" "+below))
		}
	}
	return tree
}

var (
	listed = regexp.MustCompile(`^  (\S+)  +\S`)
	option = regexp.MustCompile(`^    (?:(-\w), )?--([\w-]+)=`)
)

// readHelp reads the commands and the flags that a help lists.
func readHelp(text string) helpOf {
	h, commands := helpOf{short: map[string]string{}}, false
	for line := range strings.SplitSeq(text, "\n") {
		if line != "" && line[0] != ' ' && line[0] != '\t' {
			commands = strings.HasSuffix(line, "Commands:")
		}
		if found := listed.FindStringSubmatch(line); commands && found != nil {
			h.below = append(h.below, found[1])
		}
		if found := option.FindStringSubmatch(line); found != nil {
			h.flags = append(h.flags, found[2])
			if found[1] != "" {
				h.short[found[1]] = found[2]
			}
		}
	}
	return h
}

// flagsOf are the flags among words, as they were given.
func flagsOf(words []string) []string {
	var flags []string
	for _, word := range words {
		if word == "--" {
			break
		}
		if len(word) > 1 && word[0] == '-' {
			flag, _, _ := strings.Cut(word, "=")
			flags = append(flags, flag)
		}
	}
	return flags
}

var code = regexp.MustCompile("`([^`]+)`|kubectl kruise (.*)")

// documented are the words of all code in the document of the plugin.
func documented(t *testing.T) [][]string {
	t.Helper()
	text, err := os.ReadFile("../../docs/kubectl-kruise.md")
	if err != nil {
		t.Fatal(err)
	}
	var all [][]string
	for _, found := range code.FindAllStringSubmatch(string(text), -1) {
		words := strings.Fields(strings.TrimPrefix(found[1]+found[2], "kubectl kruise "))
		if len(words) > 0 {
			all = append(all, words)
		}
	}
	return all
}
