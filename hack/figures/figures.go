package main

import (
	"strings"

	"github.com/kruisekit/kruisekit/hack/surface/exported"
)

// sample is the package whose import is counted.
const sample = "controllers/cloneset"

func (h house) surface() ([]figure, error) {
	surfaces, err := exported.Surfaces(h.root)
	if err != nil {
		return nil, err
	}
	top, all, mentions := 0, 0, 0
	for _, s := range surfaces {
		all += len(s.Identifiers)
		for _, i := range s.Identifiers {
			mentions += len(i.Mentions)
			if !strings.Contains(i.Name, ".") {
				top++
			}
		}
	}
	return []figure{
		{"public packages", len(surfaces), "without mains, the root, `internal/`, `hack/`, `examples/` and paths of tests"},
		{"exported identifiers", top, "constants, variables, functions and types of public packages"},
		{"exported identifiers and members", all, "the same, methods and fields: the lines of `hack/surface/listing`"},
		{"mentions of internal types", mentions, "by exported identifiers and members: `hack/surface/known.txt`"},
	}, nil
}

func (h house) shape() ([]figure, error) {
	top, err := directories(h.root)
	if err != nil {
		return nil, err
	}
	own, err := compiled(h.root, sample)
	if err != nil {
		return nil, err
	}
	n := internalsOf(h.packages, h.files)
	const aside = "; packages that help tests aside"
	return []figure{
		{"top-level directories", top, "without hidden ones and `bin`"},
		{"internal packages", n.all, "below `internal/`, with packages that help tests"},
		{"small internal packages", n.small, "below `internal/`, with at most 45 lines of code" + aside},
		{"internal packages with one importer", n.single, "below `internal/`, imports by tests not counted" + aside},
		{"nested internal packages", n.nested, "of the library, below other `internal/` directories" + aside},
		{"own packages of " + sample, own, "compiled by an import of it, itself included"},
	}, nil
}

func (h house) lines() ([]figure, error) {
	tests := filter(h.files, helpsTests)
	others := filter(h.files, func(f string) bool { return !helpsTests(f) })
	const (
		code    = "lines with a token, without tests, packages that help tests and generated files"
		columns = "a tab is one column; without text in backquotes, markers and addresses, as for lll"
		runs    = "runs of 8 and more lines with the same tokens as in another place; imports aside"
	)
	library := filter(h.files, library)
	return []figure{
		{"lines of code of the library", lines(library), code + "; no tools, examples, `config/`"},
		{"lines of code of test/ and hack/", lines(filter(h.files, tools)), code},
		{"lines wider than 120 columns", wider(others, 120), columns + "; without tests"},
		{"lines of tests wider than 120 columns", wider(tests, 120), columns},
		{"lines wider than 250 columns", wider(others, 250), columns + "; without tests"},
		{"lines of tests wider than 250 columns", wider(tests, 250), columns},
		{"repeated lines of the library", repeated(library), runs},
		{"repeated lines of tests", repeated(tests), runs},
	}, nil
}

func (h house) controllers() ([]figure, error) {
	different, controllers := names(h.files, "controllers")
	calls, writers, err := writes(h.root, "controllers", clients())
	if err != nil {
		return nil, err
	}
	return []figure{
		{"controllers", controllers, "packages at `controllers/*`"},
		{"file names of controllers", different, "different names at `controllers/*`, without tests"},
		{"direct writes of controllers", calls, "calls of writing methods of controller-runtime's client and client-go"},
		{"controllers with direct writes", writers, "controllers with these calls, in packages below them too"},
	}, nil
}

func (h house) way() ([]figure, error) {
	w, err := passed(h.root)
	if err != nil {
		return nil, err
	}
	return []figure{
		{"files on the way of an update in place", w.files, "with statements that run while one pod is updated"},
		{"files of an update in place alone", w.own, "with statements that do not run while the pod is created"},
		{"packages on the way of an update in place", w.packages, "packages of the files on the way"},
	}, nil
}
