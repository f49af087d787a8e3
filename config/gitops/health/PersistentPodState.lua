local function answer(status, message) return { status = status, message = message } end
local status = obj.status or {}
if (status.observedGeneration or 0) < (obj.metadata.generation or 1) then
  return answer("Progressing", "the spec has not been observed yet")
end
return answer("Healthy", "")
