// An SDR memory chip, for simulation: what it holds, and after how many cycles it shows it. It
// takes commands when the system's clock falls.
module sdr_chip #(
    parameter DATA_BITS = 32, BANK_BITS = 2, ROW_BITS = 11, COLUMN_BITS = 8, ADDRESS_BITS = 11,
              LATENCY = 2
) (
    input clock,
    input [2:0] command,                // RAS, CAS, WE
    input [BANK_BITS-1:0] bank,
    input [ADDRESS_BITS-1:0] address,
    input [DATA_BITS/8-1:0] mask,
    input [DATA_BITS-1:0] data,
    output reg [DATA_BITS-1:0] data_out
);
    localparam ACTIVATE = 3'b100, READ = 3'b010, WRITE = 3'b011;

    reg [DATA_BITS-1:0] content [0:(1 << BANK_BITS + ROW_BITS + COLUMN_BITS)-1];
    reg [ROW_BITS-1:0] rows [0:(1 << BANK_BITS)-1];
    reg [DATA_BITS-1:0] coming [0:LATENCY-2];
    wire [BANK_BITS+ROW_BITS+COLUMN_BITS-1:0] place = {rows[bank], bank, address[COLUMN_BITS-1:0]};
    integer lane;

    always @(negedge clock) begin
        if (command == ACTIVATE)
            rows[bank] <= address[ROW_BITS-1:0];
        if (command == WRITE)
            for (lane = 0; lane < DATA_BITS / 8; lane = lane + 1)
                if (!mask[lane])
                    content[place][8*lane +: 8] <= data[8*lane +: 8];
        coming[0] <= command == READ ? content[place] : {DATA_BITS{1'b1}};
        for (lane = 1; lane < LATENCY - 1; lane = lane + 1)
            coming[lane] <= coming[lane - 1];
        data_out <= coming[LATENCY - 2];
    end
endmodule
