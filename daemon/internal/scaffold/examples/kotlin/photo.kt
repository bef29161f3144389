// Takes a photo when the capture button is pressed, and says why if it cannot.
import service.Glasses
import service.GlassesError
import service.Settings
import service.connect

private fun take(glasses: Glasses): String = try {
    val photo = glasses.photo(1280)
    "${photo.width} x ${photo.height}, ${photo.data.size} bytes of ${photo.mime}"
} catch (e: GlassesError) {
    when (e.code) {
        "permission_denied" -> "The camera is not allowed"
        "busy", "media_lost" -> "Please try again"
        else -> "No photo: ${e.message}"
    }
}

fun main() {
    val glasses = connect(Settings("Camera", "1.0", release = false))
    var text = "Press the capture button"
    glasses.show(mapOf("type" to "text", "text" to text))
    glasses.run { event ->
        val isCapture = event.type == "input" && event.payload["kind"] == "capture"
        if (isCapture) text = take(glasses)
        if (isCapture || event.type == "device" && glasses.device["panel"] != null) { // another model's panel is clear
            glasses.show(mapOf("type" to "text", "text" to text))
        }
    }
}
