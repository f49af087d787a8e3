package dashboard

import (
	"io/fs"
	"regexp"
	"strings"
	"testing"
)

// The page makes no markup of texts, has no inline script or style, and loads nothing from elsewhere.
func TestPage(t *testing.T) {
	forbidden := regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|\beval\(|new Function|` +
		`createContextualFragment|\bstyle=|\bon[a-z]+=|<script>|javascript:|setTimeout\('|@import|url\(`)
	elsewhere := regexp.MustCompile(`https?://[^'" <]*`)
	imported := regexp.MustCompile(`from '\./([^']+)'`)
	size := 0
	err := fs.WalkDir(page, "page", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := page.ReadFile(path)
		if err != nil {
			return err
		}
		size += len(data)
		for _, found := range forbidden.FindAllString(string(data), -1) {
			t.Errorf("%s has %s", path, found)
		}
		for _, found := range elsewhere.FindAllString(string(data), -1) {
			if found != "http://www.w3.org/2000/svg" { // a name, which is not loaded
				t.Errorf("%s names %s", path, found)
			}
		}
		for _, m := range imported.FindAllStringSubmatch(string(data), -1) {
			if _, err := fs.Stat(page, "page/"+m[1]); err != nil {
				t.Errorf("%s: %v", path, err)
			}
		}
		if strings.Contains(string(data), "\t") {
			t.Errorf("%s has tabs", path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if size > 100<<10 {
		t.Errorf("the page has %d bytes", size)
	}
}
