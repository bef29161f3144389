// Raw sound and movement: handlers get each piece of a stream while the loop takes the other events.
import Foundation

actor Meter {
    var loudest = 0

    func listen(_ data: Data) {
        let bytes = [UInt8](data)
        for i in stride(from: 0, to: bytes.count - 1, by: 2) {
            let sample = Int16(bitPattern: UInt16(bytes[i]) | UInt16(bytes[i + 1]) << 8)
            loudest = max(loudest, Int(sample.magnitude))
        }
    }
}

@main
struct Streams {
    static func main() async throws {
        let glasses = try await Glasses.connect(GlassesSettings(name: "Meter", version: "1.0"))
        let meter = Meter()
        try await glasses.startAudio(sampleRate: 16000) { chunk in await meter.listen(chunk.data ?? Data()) }
        try await glasses.startMotion(hz: 5) { event in print("up: \(event.payload["az"] ?? 0) thousandths of g") }
        for try await event in glasses.events {
            if event.type != "input" { continue }
            try await glasses.stopMotion()
            try await glasses.stopAudio()
            print("loudest sample: \(await meter.loudest)")
        }
    }
}
