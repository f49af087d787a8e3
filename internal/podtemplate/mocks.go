package podtemplate

import (
	"iter"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// mocks are the volumes that stand for others: from which index on, and the path in the workload of the name that each
// has.
type mocks struct {
	first int
	paths []string
}

// mockVolumes adds a volume for each claim, so that containers can mount them. With Incomplete it also adds those that
// containers mount and that are missing.
func (t Template) mockVolumes(content map[string]any) (m mocks, missing field.ErrorList) {
	spec, ok := content["spec"].(map[string]any)
	if !ok {
		return mocks{}, nil
	}
	volumes, ok := spec["volumes"].([]any)
	if !ok && spec["volumes"] != nil {
		return mocks{}, nil // it is wrong, and the API server says so
	}
	m.first = len(volumes)
	mock := func(name string, at *field.Path) {
		m.paths = append(m.paths, at.String())
		volumes = append(volumes, map[string]any{
			"name": name, "persistentVolumeClaim": map[string]any{"claimName": "dry-run"},
		})
	}
	known := names(spec)
	for i, name := range t.Claims {
		if !known[name] {
			mock(name, t.ClaimsPath.Index(i).Child("metadata", "name"))
		}
	}
	if t.Incomplete {
		mocked := map[string]bool{}
		for at, name := range unknown(spec, t.Claims, t.Path.Child("spec")) {
			if missing = append(missing, field.NotFound(at, name)); !mocked[name] {
				mocked[name] = true
				mock(name, at)
			}
		}
	}
	if len(m.paths) > 0 {
		spec["volumes"] = volumes
	}
	return m, missing
}

// names returns the names of the volumes of a pod.
func names(spec map[string]any) map[string]bool {
	known := map[string]bool{}
	for _, volume := range objects(spec["volumes"]) {
		name, _ := volume["name"].(string)
		known[name] = true
	}
	return known
}

// Unknown returns the names of the volumes that containers of a template use, and that neither the template nor its
// claims have.
func Unknown(template map[string]any, claims []string) []string {
	spec, _ := template["spec"].(map[string]any)
	var all []string
	for _, name := range unknown(spec, claims, field.NewPath("spec")) {
		if !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return all
}

// unknown returns the uses of volumes that neither a pod nor its claims have. A name that no volume can have is left to
// the API server.
func unknown(spec map[string]any, claims []string, at *field.Path) iter.Seq2[*field.Path, string] {
	known := names(spec)
	for _, name := range claims {
		known[name] = true
	}
	return func(yield func(*field.Path, string) bool) {
		for at, name := range mounts(spec, at) {
			if !known[name] && len(validation.IsDNS1123Label(name)) == 0 && !yield(at, name) {
				return
			}
		}
	}
}

// mounts returns the names of the volumes that containers use, with their paths.
func mounts(spec map[string]any, at *field.Path) iter.Seq2[*field.Path, string] {
	return func(yield func(*field.Path, string) bool) {
		for _, kind := range []string{"initContainers", "containers"} {
			containers, _ := spec[kind].([]any)
			for i, c := range containers {
				container, _ := c.(map[string]any)
				for _, uses := range []string{"volumeMounts", "volumeDevices"} {
					list, _ := container[uses].([]any)
					for j, m := range list {
						mount, _ := m.(map[string]any)
						name, _ := mount["name"].(string)
						if !yield(at.Child(kind).Index(i).Child(uses).Index(j).Child("name"), name) {
							return
						}
					}
				}
			}
		}
	}
}

// absent divides faults into those of what a template lacks, which another pod webhook may add, and those of what is
// wrong in it.
func absent(faults field.ErrorList) (absent, wrong field.ErrorList) {
	for _, fault := range faults {
		switch fault.Type {
		case field.ErrorTypeRequired, field.ErrorTypeNotFound:
			absent = append(absent, fault)
		default:
			wrong = append(wrong, fault)
		}
	}
	return absent, wrong
}
