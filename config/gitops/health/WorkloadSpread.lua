local function answer(status, message) return { status = status, message = message } end
local status = obj.status or {}
if (status.observedGeneration or 0) < (obj.metadata.generation or 1) then
  return answer("Progressing", "the spec has not been observed yet")
end
for _, subset in ipairs(status.subsetStatuses or {}) do
  for _, c in ipairs(subset.conditions or {}) do
    if c.type == "SubsetSchedulable" and c.status == "False" then
      return answer("Healthy", "the subset " .. subset.name .. " is unschedulable, and others take its pods")
    end
  end
end
return answer("Healthy", "")
