// The part of Web Bluetooth that bluetooth.js uses; the type checker's libraries lack it.

interface BluetoothCharacteristic {
  readonly value?: DataView<ArrayBuffer>;
  oncharacteristicvaluechanged: (() => void) | null;
  startNotifications(): Promise<BluetoothCharacteristic>;
  writeValueWithResponse(value: Uint8Array<ArrayBuffer>): Promise<void>;
  writeValueWithoutResponse(value: Uint8Array<ArrayBuffer>): Promise<void>;
}

interface BluetoothService {
  getCharacteristic(uuid: string): Promise<BluetoothCharacteristic>;
}

interface BluetoothServer {
  connect(): Promise<BluetoothServer>;
  disconnect(): void;
  getPrimaryService(uuid: string): Promise<BluetoothService>;
}

interface BluetoothDevice extends EventTarget {
  readonly name?: string;
  readonly gatt: BluetoothServer;
}

interface Navigator {
  /** Missing in browsers without Web Bluetooth. */
  readonly bluetooth?: {
    getAvailability(): Promise<boolean>;
    requestDevice(options: {
      filters: { namePrefix: string }[];
      optionalServices: string[];
    }): Promise<BluetoothDevice>;
  };
}
