package podtemplate

import (
	"iter"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// mocks are the volumes that stand for others: from which index on, and the path in the workload of the name that each has.
type mocks struct {
	first int
	paths []string
}

// mockVolumes adds a volume for each claim, so that containers can mount them. With Incomplete it also adds those that containers mount and
// that are missing.
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
	known := map[string]bool{}
	for _, volume := range objects(spec["volumes"]) {
		name, _ := volume["name"].(string)
		known[name] = true
	}
	mock := func(name string, at *field.Path) {
		m.paths = append(m.paths, at.String())
		volumes = append(volumes, map[string]any{
			"name": name, "persistentVolumeClaim": map[string]any{"claimName": "dry-run"},
		})
	}
	for i, name := range t.Claims {
		if !known[name] {
			mock(name, t.ClaimsPath.Index(i).Child("metadata", "name"))
		}
	}
	for _, name := range t.Claims {
		known[name] = true
	}
	if t.Incomplete {
		mocked := map[string]bool{}
		for at, name := range mounts(spec, t.Path.Child("spec")) {
			if known[name] || len(validation.IsDNS1123Label(name)) > 0 {
				continue
			}
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

// absent divides faults into those of what a template lacks, which another pod webhook may add, and those of what is wrong in it.
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
