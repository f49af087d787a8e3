local function answer(status, message) return { status = status, message = message } end
local status = obj.status or {}
if (status.observedGeneration or 0) < (obj.metadata.generation or 1) then
  return answer("Progressing", "the spec has not been observed yet")
end
if (status.currentAvailable or 0) < (status.desiredAvailable or 0) then
  return answer("Progressing", (status.currentAvailable or 0) .. " of " .. status.desiredAvailable .. " pods are available")
end
return answer("Healthy", (status.unavailableAllowed or 0) .. " pods may become unavailable")
